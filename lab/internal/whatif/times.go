package whatif

import (
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// Times are service times to draw from: each as likely as it was measured.
//
// Shape: made by TimesOf; there is at least one.
// Concurrency: it never changes.
type Times struct {
	values []time.Duration // in order
	upTo   []int64         // how many were measured that are not above values[i]
	mean   time.Duration
}

// TimesOf returns what a histogram has counted, each less the same time; what is
// shorter than that counts as zero. Without any it is nil.
func TimesOf(h *latency.Histogram, less time.Duration) *Times {
	t := &Times{}
	sum, all := 0.0, int64(0)
	for d, calls := range h.All() {
		d = max(d-less, 0)
		all += calls
		sum += float64(d) * float64(calls)
		t.values, t.upTo = append(t.values, d), append(t.upTo, all)
	}
	if all == 0 {
		return nil
	}
	t.mean = time.Duration(sum / float64(all))
	return t
}

// Draw implements ranksim.Service.
func (t *Times) Draw(random *rand.Rand) time.Duration {
	n := random.Int64N(t.Count())
	i := sort.Search(len(t.upTo), func(i int) bool { return t.upTo[i] > n })
	return t.values[i]
}

// Count is how many were measured.
func (t *Times) Count() int64 { return t.upTo[len(t.upTo)-1] }

// Mean is their mean.
func (t *Times) Mean() time.Duration { return t.mean }

// At is the time that the share (0.99 is p99) of them does not exceed.
func (t *Times) At(share float64) time.Duration {
	i, _ := slices.BinarySearchFunc(t.upTo, share*float64(t.Count()), func(upTo int64, n float64) int {
		if float64(upTo) < n {
			return -1
		}
		return 1
	})
	return t.values[min(i, len(t.values)-1)]
}
