//go:build !soak && !race

package ranksim

import "time"

// The short form: few loads, and enough calls that no bar depends on chance.
const (
	barCalls = 100_000
	barSeeds = 1
	barBurst = 30 * time.Second // of overload
	barHolds = true
)

func barLoads() []float64 { return []float64{0.7, 0.9} }

func loopCallers() []int { return []int{1, 60, 120, 240, 300} }
