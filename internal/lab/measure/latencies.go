package measure

import (
	"math/bits"
	"time"
)

const (
	subBits    = 5 // 32 steps per power of two: quantiles are at most 3 % too high
	subBuckets = 1 << subBits
)

// Latencies counts durations in logarithmic buckets. The zero value is empty.
type Latencies struct {
	counts [(64 - subBits + 1) * subBuckets]uint64
	total  uint64
	most   time.Duration
}

// Add counts one duration; a negative one counts as 0.
func (l *Latencies) Add(d time.Duration) {
	d = max(d, 0)
	l.counts[bucket(uint64(d))]++
	l.total++
	l.most = max(l.most, d)
}

// Merge adds all that other has counted.
func (l *Latencies) Merge(other *Latencies) {
	for i, n := range other.counts {
		l.counts[i] += n
	}
	l.total += other.total
	l.most = max(l.most, other.most)
}

// Quantile returns a duration that the share q (0 to 1) of all do not exceed:
// the upper end of its bucket, at most the longest; 0 when nothing was counted.
func (l *Latencies) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(l.total))
	var seen uint64
	for i, n := range l.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(time.Duration(upper(i)), l.most)
		}
	}
	return 0
}

// bucket is exact below 2*subBuckets, then keeps subBits bits behind the
// leading one.
func bucket(ns uint64) int {
	shift := max(bits.Len64(ns)-subBits-1, 0)
	return shift*subBuckets + int(ns>>shift)
}

// upper is the largest value of a bucket.
func upper(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return (uint64(i%subBuckets+subBuckets)+1)<<shift - 1
}
