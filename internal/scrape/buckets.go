package scrape

import "slices"

// mostGoneBounds is how many bounds are kept of processes that have gone.
const mostGoneBounds = 1000

// buckets is a classic histogram. +Inf is not among its bounds: that is count.
type buckets struct {
	count, sum float64
	bounds     []float64 // ascending
	counts     []float64 // of values up to each bound

	native *native // nil if nobody has one
}

// add adds the histogram of another process that is there. Only bounds that both have
// stay; it reports whether all did. A nil receiver is one that nothing was added to.
func (b *buckets) add(other *buckets) (sum *buckets, same bool) {
	if b == nil {
		return other.clone(), true
	}
	if slices.Equal(b.bounds, other.bounds) {
		return b.over(b.bounds, other), true
	}
	var bounds []float64
	for _, bound := range b.bounds {
		if _, ok := slices.BinarySearch(other.bounds, bound); ok {
			bounds = append(bounds, bound)
		}
	}
	return b.over(bounds, other), false
}

// addGone adds what processes have counted that have gone. It costs no bound: what they
// had counted up to a bound that they did not have is what they had up to the one below.
func (b *buckets) addGone(gone *buckets) *buckets {
	switch {
	case gone == nil:
		return b
	case b == nil:
		return gone.clone()
	}
	return b.over(b.bounds, gone)
}

// joined is what processes have counted that have gone, over the bounds of all of them,
// or of the last one if there are too many.
func (b *buckets) joined(last *buckets) *buckets {
	if b == nil {
		return last.clone()
	}
	bounds := slices.Concat(b.bounds, last.bounds)
	slices.Sort(bounds)
	if bounds = slices.Compact(bounds); len(bounds) > mostGoneBounds {
		bounds = last.bounds
	}
	return b.over(bounds, last)
}

// over adds two histograms over some bounds.
func (b *buckets) over(bounds []float64, other *buckets) *buckets {
	same := slices.Equal(bounds, b.bounds) && slices.Equal(bounds, other.bounds)
	sum := &buckets{count: b.count + other.count, sum: b.sum + other.sum, bounds: bounds, native: addNative(b.native, other.native)}
	sum.counts = make([]float64, len(bounds))
	for n, bound := range bounds {
		if same {
			sum.counts[n] = b.counts[n] + other.counts[n]
		} else {
			sum.counts[n] = b.upTo(bound) + other.upTo(bound)
		}
	}
	return sum
}

// upTo returns how many values were counted up to the last bound that is not above one.
func (b *buckets) upTo(bound float64) float64 {
	n, ok := slices.BinarySearch(b.bounds, bound)
	switch {
	case ok:
		return b.counts[n]
	case n > 0:
		return b.counts[n-1]
	}
	return 0
}

func (b *buckets) clone() *buckets {
	return &buckets{b.count, b.sum, slices.Clone(b.bounds), slices.Clone(b.counts), b.native}
}
