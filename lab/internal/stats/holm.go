package stats

import (
	"cmp"
	"slices"
)

// decision is what the correction for many figures makes of one p-value.
type decision struct {
	// adjusted is the p-value to compare with the error of the whole family.
	adjusted float64
	// level is the error that the figure was tested with in its step. An
	// interval with this error leaves out zero exactly if the figure is shown.
	level float64
}

// holm corrects the p-values of a family of m figures so that the chance to
// show any that is not there is at most alpha, however they depend on each
// other. The smallest p-value is compared with alpha/m, the next one with
// alpha/(m-1), and so on; at the first that is too large it ends, and that one
// and all after it are not shown.
//
// Source: Holm, "A simple sequentially rejective multiple test procedure",
// Scandinavian Journal of Statistics 6 (1979).
func holm(p []float64, alpha float64) []decision {
	places := make([]int, len(p))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(p[a], p[b]) })

	decisions := make([]decision, len(p))
	least, stopped := 0.0, 0.0
	for step, i := range places {
		left := float64(len(p) - step)
		least = max(least, min(1, left*p[i]))
		if stopped == 0 && least > alpha {
			stopped = alpha / left
		}
		decisions[i] = decision{adjusted: least, level: alpha / left}
		if stopped > 0 {
			decisions[i].level = stopped
		}
	}
	return decisions
}
