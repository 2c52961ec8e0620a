//go:build soak

package scalesim

import "time"

// The long form (make soak, make bars): a day of every load.
const (
	barDay   = 24 * time.Hour
	barFixed = 2 * time.Hour
	barCalls = 2_000_000
)

func barLoads() []float64 { return []float64{0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95} }
