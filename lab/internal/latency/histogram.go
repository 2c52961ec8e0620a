package latency

import (
	"iter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Bound is the longest duration that is told apart. What took longer is
	// counted as Bound.
	Bound = time.Hour

	// digits is how many significant digits are kept: a quantile is at most
	// 0.1 % above the true one.
	digits = 3
)

// Histogram counts durations.
//
// Shape: made by New, or by UnmarshalText; each takes 270 KB, whatever is in it.
// Units: nanoseconds, from 0 to Bound. Up to 2 µs every nanosecond is told
// apart, above it three digits are.
// Concurrency: none. Every goroutine records into its own; they are merged
// when the goroutines are done.
type Histogram struct {
	hdr *hdrhistogram.Histogram
}

// New returns an empty histogram.
func New() *Histogram {
	return &Histogram{hdr: hdrhistogram.New(1, int64(Bound), digits)}
}

// Record counts one duration, without allocating. Nothing is dropped: what is
// above Bound counts as Bound, what is below zero as zero.
func (h *Histogram) Record(d time.Duration) {
	// It cannot fail: the value is in the range that New was given.
	_ = h.hdr.RecordValue(int64(min(max(d, 0), Bound)))
}

// Merge adds all that other has counted. Nothing is lost, since all histograms
// have the same buckets. other stays as it is.
func (h *Histogram) Merge(other *Histogram) {
	// Nothing is outside the range, and no lab makes 2^63 calls.
	_ = h.hdr.Merge(other.hdr)
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() int64 { return h.hdr.TotalCount() }

// Mean returns the arithmetic mean to three digits, 0 of nothing.
func (h *Histogram) Mean() time.Duration { return min(time.Duration(h.hdr.Mean()), Bound) }

// Min returns the shortest duration, at most 0.1 % too low; 0 of nothing.
func (h *Histogram) Min() time.Duration { return time.Duration(h.at(0)) }

// Max returns the longest duration, at most 0.1 % too high and never above
// Bound; 0 of nothing.
func (h *Histogram) Max() time.Duration { return time.Duration(h.at(100)) }

// at returns the value at a percentile, in nanoseconds. It is the upper end of
// its bucket, as HdrHistogram has it, but for percentile 0.
func (h *Histogram) at(percentile float64) int64 {
	return min(h.hdr.ValueAtPercentile(percentile), int64(Bound))
}

// All yields the durations that were recorded, from the shortest on, with how many
// there were of each: to three digits, the middle of what is not told apart.
func (h *Histogram) All() iter.Seq2[time.Duration, int64] {
	return func(yield func(time.Duration, int64) bool) {
		for _, bar := range h.hdr.Distribution() {
			if bar.Count > 0 && !yield(time.Duration(min((bar.From+bar.To)/2, int64(Bound))), bar.Count) {
				return
			}
		}
	}
}
