// Package latency keeps how long calls took, in histograms of the HDR kind:
// three significant digits from a nanosecond to an hour, so that a difference
// of 5 % shows at any height, in memory that does not grow with the calls.
//
// A Histogram counts durations. Calls has two of them, for answers and for failures, and counts
// the failures by code. Both merge without loss, and are written in the compressed form (V2) that
// the other HdrHistogram tools read, as text inside JSON.
//
// It knows no call, no clock and no arm. What two arms say about each other is for package stats.
package latency

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Bound is the longest duration that is told apart. What took longer is counted as Bound.
	Bound = time.Hour
	// digits is how many significant digits are kept: a quantile is at most
	// 0.1 % above the true one.
	digits = 3
)

// Histogram counts durations.
//
// Shape: made by New, or by UnmarshalText; each takes 270 KB, whatever is in it.
// Units: nanoseconds, from 0 to Bound. Up to 2 µs every nanosecond is told apart.
// Concurrency: none. Every goroutine records into its own; they are merged when those are done.
type Histogram struct{ hdr *hdrhistogram.Histogram }

// New returns an empty histogram.
func New() *Histogram { return &Histogram{hdr: hdrhistogram.New(1, int64(Bound), digits)} }

// Record counts one duration, without allocating. Nothing is dropped: what is
// above Bound counts as Bound, what is below zero as zero.
func (h *Histogram) Record(d time.Duration) {
	_ = h.hdr.RecordValue(int64(min(max(d, 0), Bound))) // in the range that New was given
}

// Merge adds all that other has counted. Nothing is lost, since all histograms
// have the same buckets. other stays as it is.
func (h *Histogram) Merge(other *Histogram) {
	_ = h.hdr.Merge(other.hdr) // nothing is outside the range, and no lab makes 2^63 calls
}

// Reset forgets all durations.
func (h *Histogram) Reset() { h.hdr.Reset() }

// Count returns how many durations were recorded.
func (h *Histogram) Count() int64 { return h.hdr.TotalCount() }

// Mean returns the arithmetic mean to three digits, 0 of nothing.
func (h *Histogram) Mean() time.Duration { return min(time.Duration(h.hdr.Mean()), Bound) }

// Max returns the longest duration, at most 0.1 % too high and never above Bound; 0 of nothing.
func (h *Histogram) Max() time.Duration { return h.At(1) }

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

// callsBeyond is how many calls have to lie beyond a quantile before it is
// told. The number of them varies from run to run by about its square root,
// here a tenth; with ten calls beyond, p99 would be the tale of ten accidents.
const callsBeyond = 100

// Quantile is the duration that a share of the calls did not exceed, or the
// statement that there were too few calls to tell.
type Quantile struct {
	Share  float64       // which one: 0.99 is p99
	Value  time.Duration // the duration, at most 0.1 % too high; 0 if TooFew
	TooFew bool          // true with fewer calls than Needs
	Needs  int64         // how many calls it takes to tell this quantile
}

// Needs returns how many calls it takes to tell the quantile of a share: so many that 100 of them
// lie beyond it. That is 200 calls for p50, 1,000 for p90, 10,000 for p99 and 100,000 for p99.9.
// For a share that is not between 0 and 1 no number is enough.
func Needs(share float64) int64 {
	beyond := min(share, 1-share)
	if !(beyond > 1e-9) { // also NaN
		return math.MaxInt64
	}
	return int64(math.Round(callsBeyond / beyond))
}

// At is Quantile however few calls there are, for figures that are kept beside the
// histogram; 0 of nothing.
func (h *Histogram) At(share float64) time.Duration {
	return min(time.Duration(h.hdr.ValueAtPercentile(100*share)), Bound)
}

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

const (
	mostCode = 16 // the highest status code of gRPC, UNAUTHENTICATED
	unknown  = 2  // the code for everything that is no code of a failure
)

// Calls is what became of a number of calls: how long answers took, how long
// failures took, and how they failed. The two are kept apart, since a call
// that fails at once would make the answers look fast.
//
// Shape: made by NewCalls, or from JSON.
// Concurrency: none, as with Histogram.
type Calls struct {
	Answered *Histogram `json:"answered"` // the calls that ended with the status OK
	Failed   *Histogram `json:"failed"`   // all others, with the time after which they failed
	// Codes counts the failed ones by the status code of gRPC, 1 to 16.
	Codes map[uint32]int64 `json:"codes"`
}

// NewCalls returns an account of no calls.
func NewCalls() *Calls { return &Calls{Answered: New(), Failed: New(), Codes: map[uint32]int64{}} }

// Answer counts a call that was answered after d. It does not allocate.
func (c *Calls) Answer(d time.Duration) { c.Answered.Record(d) }

// Fail counts a call that failed after d with a status code of gRPC. A code that is none of a
// failure (0, or above 16) counts as UNKNOWN (2), as gRPC has it; it is returned.
func (c *Calls) Fail(code uint32, d time.Duration) (counted uint32) {
	if code == 0 || code > mostCode {
		code = unknown
	}
	c.Failed.Record(d)
	c.Codes[code]++
	return code
}

// Merge adds all that other has counted.
func (c *Calls) Merge(other *Calls) {
	c.Answered.Merge(other.Answered)
	c.Failed.Merge(other.Failed)
	for code, n := range other.Codes {
		c.Codes[code] += n
	}
}

// Count returns how many calls there were, answered or not.
func (c *Calls) Count() int64 { return c.Answered.Count() + c.Failed.Count() }

// MarshalText writes the histogram in the form that the HdrHistogram tools
// read: V2, compressed, in base64. Values are nanoseconds.
func (h *Histogram) MarshalText() ([]byte, error) {
	return h.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads what MarshalText has written.
//
// Errors: one line for anything else; h is then as it was.
func (h *Histogram) UnmarshalText(text []byte) error {
	hdr, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if hdr.LowestTrackableValue() != 1 || hdr.HighestTrackableValue() != int64(Bound) || hdr.SignificantFigures() != digits {
		return errors.New("histogram: its range or its digits are others")
	}
	h.hdr = hdr
	return nil
}
