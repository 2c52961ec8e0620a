package scalesim

import (
	"math"
	"time"
)

const (
	// fineness is by how much one bucket of Waits is above the one before.
	fineness = 1.02
	// waitBuckets reach from a microsecond to days.
	waitBuckets = 1500
)

// Waits counts how long calls have waited, to within 2 %.
type Waits struct {
	counts [waitBuckets]int
	all    int
	none   int // that found a free slot
	max    time.Duration
}

func (w *Waits) add(d time.Duration) {
	w.all++
	w.max = max(w.max, d)
	if d == 0 {
		w.none++
		return
	}
	i := int(math.Log(max(float64(d/time.Microsecond), 1)) / math.Log(fineness))
	w.counts[min(i, waitBuckets-1)]++
}

// Max returns the longest wait.
func (w *Waits) Max() time.Duration { return w.max }

// Quantile returns what at least the share q of the waits does not exceed, to
// within 2 %.
func (w *Waits) Quantile(q float64) time.Duration {
	left := int(math.Ceil(q*float64(w.all))) - w.none
	if left <= 0 {
		return 0
	}
	for i, n := range w.counts {
		if left -= n; left <= 0 {
			return min(time.Duration(math.Pow(fineness, float64(i+1)))*time.Microsecond, w.max)
		}
	}
	return w.max
}
