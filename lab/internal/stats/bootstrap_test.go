//go:build !race

package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// resamples is how many times a bootstrap draws from the values.
const resamples = 1000

// bca is the 95 % bootstrap interval of a mean, with the corrections for bias and acceleration.
// It is here for the comparison that decided against it (docs/decisions).
//
// Source: Efron, "Better bootstrap confidence intervals", J. American
// Statistical Association 82 (1987); the acceleration from the jackknife.
func bca(values []float64, random *rand.Rand) (low, high float64) {
	mean := stat.Mean(values, nil)
	means := make([]float64, resamples)
	below := 0.0
	for b := range means {
		for range values {
			means[b] += values[random.IntN(len(values))] / float64(len(values))
		}
		if means[b] < mean {
			below++
		}
	}
	slices.Sort(means)

	cubes, squares := 0.0, 0.0
	for _, v := range values {
		off := v - mean
		cubes += off * off * off
		squares += off * off
	}
	acceleration := cubes / (6 * math.Pow(squares, 1.5))
	bias := distuv.UnitNormal.Quantile(below / resamples)
	end := func(share float64) float64 {
		z := bias + distuv.UnitNormal.Quantile(share)
		place := distuv.UnitNormal.CDF(bias + z/(1-acceleration*z))
		return means[min(int(place*resamples), resamples-1)]
	}
	return end(0.025), end(0.975)
}
