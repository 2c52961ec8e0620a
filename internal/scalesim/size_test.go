//go:build !soak && !race

package scalesim

import "time"

// The short form: a few loads for some hours.
const (
	barDay   = 2 * time.Hour
	barFixed = 30 * time.Minute
	barCalls = 200_000
)

func barLoads() []float64 { return []float64{0.2, 0.5, 0.95} }
