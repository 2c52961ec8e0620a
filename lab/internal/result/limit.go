package result

import (
	"math"
	"slices"
)

// Highest is the highest rate at which an arm has fewer errors than the limit of the
// run, among the open loads that were measured.
type Highest struct {
	Arm string
	// Rate is 0 if there are too many errors at the lowest rate already.
	Rate float64
	// Top says that it is the highest rate that was judged: there may be higher ones.
	Top bool
	// Unjudged says that all blocks are marked: nothing is known.
	Unjudged bool
}

// HighestRates returns it for each arm that was measured at two rates or more; nothing
// if the run has no limit. A rate counts if the median of its blocks without marks is below
// the limit, and that of every lower rate. Rates at which other things happen, too, do not count.
func (r *Run) HighestRates() (all []Highest) {
	if r.Limit <= 0 {
		return nil
	}
	for _, a := range r.Arms {
		errors := map[float64][]float64{}
		for i := range r.Blocks {
			b := &r.Blocks[i]
			l, known := r.LoadNamed(b.Load)
			if b.Arm == a.Name && known && l.Unit == "calls/s" && len(b.Events) == 0 {
				judged := errors[l.X]
				if b.Judged() {
					judged = append(judged, b.Figures["errors"])
				}
				errors[l.X] = judged
			}
		}
		if len(errors) > 1 {
			all = append(all, highest(a.Name, errors, r.Limit))
		}
	}
	return all
}

func highest(arm string, errors map[float64][]float64, limit float64) Highest {
	h := Highest{Arm: arm}
	var rates []float64
	for rate, judged := range errors {
		if len(judged) > 0 {
			rates = append(rates, rate)
		}
	}
	slices.Sort(rates)
	h.Top, h.Unjudged = len(rates) > 0, len(rates) == 0
	for _, rate := range rates {
		if median(errors[rate]) >= limit {
			h.Top = false
			return h
		}
		h.Rate = rate
	}
	return h
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
