package peers

import (
	"fmt"
	"slices"
)

// spread is the median of the repeats and how far they lie apart.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func (s spread) String() string { return s.text(2) }

// text has so many digits behind the point.
func (s spread) text(digits int) string {
	return fmt.Sprintf("%.*f (%.*f..%.*f)", digits, s.Median, digits, s.Min, digits, s.Max)
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

// median of an even number of values is the mean of the middle two; of none 0.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}
