package latency

import (
	"math"
	"time"
)

// callsBeyond is how many calls have to lie beyond a quantile before it is
// told. The number of them varies from run to run by about its square root,
// here a tenth; with ten calls beyond, p99 would be the tale of ten accidents.
const callsBeyond = 100

// Quantile is the duration that a share of the calls did not exceed, or the
// statement that there were too few calls to tell.
type Quantile struct {
	// Share is which one: 0.99 is p99.
	Share float64
	// Value is the duration, at most 0.1 % too high; 0 if TooFew.
	Value time.Duration
	// TooFew is true with fewer calls than Needs.
	TooFew bool
	// Needs is how many calls it takes to tell this quantile.
	Needs int64
}

// Needs returns how many calls it takes to tell the quantile of a share: so
// many that 100 of them lie beyond it. That is 200 calls for p50, 1,000 for
// p90, 10,000 for p99 and 100,000 for p99.9.
//
// Errors: for a share that is not between 0 and 1 no number is enough.
func Needs(share float64) int64 {
	beyond := min(share, 1-share)
	if !(beyond > 1e-9) { // also NaN
		return math.MaxInt64
	}
	return int64(math.Round(callsBeyond / beyond))
}

// At returns the duration that the share (0.99 is p99) of the calls did not
// exceed, at most 0.1 % too high, however few calls there are; 0 of nothing. It
// is for figures that are kept beside the histogram. What is told is Quantile.
func (h *Histogram) At(share float64) time.Duration { return time.Duration(h.at(100 * share)) }

// Quantile returns the duration that the share (0.99 is p99) of the calls did
// not exceed, if there are calls enough.
func (h *Histogram) Quantile(share float64) Quantile {
	q := Quantile{Share: share, Needs: Needs(share)}
	if h.Count() < q.Needs {
		q.TooFew = true
		return q
	}
	q.Value = h.At(share)
	return q
}
