package scrape

import "slices"

// buckets is a classic histogram. +Inf is not among its bounds: that is count.
type buckets struct {
	count, sum float64
	bounds     []float64 // ascending
	counts     []float64 // of values up to each bound

	native *native // nil if nobody has one
}

// add adds another histogram. Only bounds that both have stay; it reports whether all
// did. A nil receiver is one that nothing was added to.
func (b *buckets) add(other *buckets) (sum *buckets, same bool) {
	if b == nil {
		return &buckets{other.count, other.sum, slices.Clone(other.bounds), slices.Clone(other.counts), other.native}, true
	}
	b.count += other.count
	b.sum += other.sum
	b.native = addNative(b.native, other.native)
	if slices.Equal(b.bounds, other.bounds) {
		for i, n := range other.counts {
			b.counts[i] += n
		}
		return b, true
	}
	b.addShared(other)
	return b, false
}

func (b *buckets) addShared(other *buckets) {
	var bounds, counts []float64
	for i, bound := range b.bounds {
		if j, ok := slices.BinarySearch(other.bounds, bound); ok {
			bounds = append(bounds, bound)
			counts = append(counts, b.counts[i]+other.counts[j])
		}
	}
	b.bounds, b.counts = bounds, counts
}
