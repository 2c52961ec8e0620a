//go:build soak

package ranksim

import "time"

// The long form (make soak, make bars).
const (
	barCalls = 1_000_000
	barSeeds = 5
	barBurst = 30 * time.Second // of overload
	barHolds = true
)

func barLoads() []float64 { return []float64{0.5, 0.6, 0.7, 0.8, 0.9} }

func loopCallers() []int {
	return []int{1, 5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 210, 240, 270, 300}
}
