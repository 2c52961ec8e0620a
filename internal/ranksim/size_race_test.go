//go:build race && !soak

package ranksim

import "time"

// With the race detector, which makes a simulation ten times slower and finds
// nothing in its one goroutine, the bars are run through and not judged.
const (
	barCalls = 500
	barSeeds = 1
	barBurst = time.Second // of overload
	barHolds = false
)

func barLoads() []float64 { return []float64{0.9} }
