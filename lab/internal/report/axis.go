package report

import (
	"math"

	"github.com/cabrank/cabrank/lab/internal/plot"
)

// upTo is an axis from 0 that has room for a value, with ticks at round numbers.
func upTo(label string, most float64) plot.Axis {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	step := roundStep(most / 5)
	a := plot.Axis{Label: label}
	for i := 0; ; i++ {
		a.To = float64(i) * step
		a.Ticks = append(a.Ticks, a.To)
		if a.To >= most*(1-1e-9) {
			return a
		}
	}
}

// roundStep is the smallest of 1, 2 and 5 times a power of ten that is not below v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= v*(1-1e-9) {
			return n * power
		}
	}
	return 10 * power
}

// decades is a logarithmic axis that has room for values above 0, with a tick at each
// power of ten, and at twice and five times that where there are few.
func decades(label string, least, most float64) plot.Axis {
	if !(least > 0) {
		least = most / 10
	}
	if !(most > least) {
		most = least * 10
	}
	from, to := math.Floor(math.Log10(least)+1e-9), math.Ceil(math.Log10(most)-1e-9)
	to = max(to, from+1)
	a := plot.Axis{Label: label, Log: true, From: math.Pow(10, from), To: math.Pow(10, to)}
	between := []float64{1, 2, 5}
	if to-from > 3 {
		between = between[:1]
	}
	for d := from; d < to; d++ {
		for _, n := range between {
			a.Ticks = append(a.Ticks, n*math.Pow(10, d))
		}
	}
	a.Ticks = append(a.Ticks, a.To)
	return a
}
