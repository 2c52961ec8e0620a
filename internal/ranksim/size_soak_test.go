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
