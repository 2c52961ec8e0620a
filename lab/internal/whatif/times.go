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
// shorter than that counts as zero. The longest, stray of them, count as the longest of
// the others. Without any it is nil.
func TimesOf(h *latency.Histogram, less time.Duration, stray int64) *Times {
	t := &Times{}
	all := int64(0)
	for d, calls := range h.All() {
		if all < h.Count()-stray {
			t.values, t.upTo = append(t.values, max(d-less, 0)), append(t.upTo, 0)
		}
		all += calls
		t.upTo[len(t.upTo)-1] = all
	}
	if all == 0 {
		return nil
	}
	t.average()
	return t
}

// average fills in the mean.
func (t *Times) average() {
	sum, before := 0.0, int64(0)
	for i, d := range t.values {
		sum += float64(d) * float64(t.upTo[i]-before)
		before = t.upTo[i]
	}
	t.mean = time.Duration(sum / float64(before))
}

// surelyMany are so many times that another measurement would come out the same.
const surelyMany = 50_000

// Again is what another measurement of the same service might have come to: as many
// times, drawn from these.
func (t *Times) Again(seed uint64) *Times {
	n := t.Count()
	if n > surelyMany {
		return t
	}
	random := rand.New(rand.NewPCG(seed, 2))
	again := &Times{values: t.values, upTo: make([]int64, len(t.values))}
	for range n {
		again.upTo[t.draw(random)]++
	}
	for i := 1; i < len(again.upTo); i++ {
		again.upTo[i] += again.upTo[i-1]
	}
	again.average()
	return again
}

// Draw implements ranksim.Service.
func (t *Times) Draw(random *rand.Rand) time.Duration { return t.values[t.draw(random)] }

func (t *Times) draw(random *rand.Rand) int {
	n := random.Int64N(t.Count())
	return sort.Search(len(t.upTo), func(i int) bool { return t.upTo[i] > n })
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
