package latency_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// A figure is at most 0.1 % above what was recorded, over the whole range.
func TestPrecision(t *testing.T) {
	for d := time.Duration(1); d <= latency.Bound; d = d*3/2 + 1 {
		h := latency.New()
		h.Record(d)
		for name, got := range map[string]time.Duration{"max": h.Max(), "mean": h.Mean(), "min": h.At(0), "p99": h.At(0.99)} {
			if off := math.Abs(float64(got-d)) / float64(d); off > 0.001 {
				t.Errorf("%s of %v is %v, off by %.4f", name, d, got, off)
			}
		}
	}
}

// What is out of range is counted at the end of the range, and told.
func TestNothingIsDropped(t *testing.T) {
	h := latency.New()
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, 59 * time.Minute, latency.Bound, latency.Bound + 1, math.MaxInt64} {
		h.Record(d)
	}
	if h.Count() != 7 || h.At(4./7) >= latency.Bound || h.At(5./7) != latency.Bound {
		t.Errorf("%d calls, want 7, of which 3 are at the bound", h.Count())
	}
	if h.At(0) != 0 || h.Max() != latency.Bound {
		t.Errorf("from %v to %v, want 0 to %v", h.At(0), h.Max(), latency.Bound)
	}
}

func TestEmpty(t *testing.T) {
	h := latency.New()
	if h.Count() != 0 || h.Mean() != 0 || h.At(0) != 0 || h.Max() != 0 {
		t.Errorf("of nothing: %d calls, mean %v, from %v to %v, want zeros", h.Count(), h.Mean(), h.At(0), h.Max())
	}
	if q := h.Quantile(0.5); !q.TooFew {
		t.Errorf("a quantile of nothing: %+v", q)
	}
}

// latencies draws times with a long tail: lognormal around 10 ms, now and then up to minutes.
func latencies(n int, seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(10e6 * math.Exp(1.5*random.NormFloat64()))
	}
	return all
}

func TestQuantilesAgainstSorting(t *testing.T) {
	h := latency.New()
	all := latencies(200_000, 1)
	for _, d := range all {
		h.Record(d)
	}
	slices.Sort(all)
	for _, share := range []float64{0.01, 0.5, 0.9, 0.95, 0.99, 0.999} {
		want := all[int(share*float64(len(all)))-1]
		got := h.Quantile(share)
		if off := float64(got.Value-want) / float64(want); got.TooFew || math.Abs(off) > 0.001 {
			t.Errorf("quantile %v is %+v, want %v", share, got, want)
		}
	}
}

func TestTooFew(t *testing.T) {
	for _, tc := range []struct {
		share float64
		needs int64
	}{
		{0.5, 200},
		{0.9, 1_000},
		{0.95, 2_000},
		{0.99, 10_000},
		{0.999, 100_000},
		{0.9999, 1_000_000},
		{0.01, 10_000},
		{0, math.MaxInt64},
		{1, math.MaxInt64},
		{-1, math.MaxInt64},
		{math.NaN(), math.MaxInt64},
	} {
		if got := latency.Needs(tc.share); got != tc.needs {
			t.Errorf("quantile %v needs %d calls, want %d", tc.share, got, tc.needs)
		}
		if tc.needs > 10_000 {
			continue
		}
		h := latency.New()
		for range tc.needs - 1 {
			h.Record(time.Millisecond)
		}
		if q := h.Quantile(tc.share); !q.TooFew || q.Value != 0 {
			t.Errorf("one call too few: %+v", q)
		}
		h.Record(time.Millisecond)
		if q := h.Quantile(tc.share); q.TooFew || q.Value < time.Millisecond {
			t.Errorf("calls enough: %+v", q)
		}
	}
}

// Merging parts gives what one histogram of all would have.
func TestMergeLosesNothing(t *testing.T) {
	whole, merged := latency.New(), latency.New()
	for part := range uint64(5) {
		h := latency.New()
		for _, d := range latencies(30_000, part) {
			h.Record(d)
			whole.Record(d)
		}
		h.Record(2 * latency.Bound)
		whole.Record(2 * latency.Bound)
		merged.Merge(h)
	}
	if got, want := text(t, merged), text(t, whole); got != want {
		t.Errorf("merged %d calls, whole %d, and they differ", merged.Count(), whole.Count())
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	calls := latency.NewCalls()
	if n := testing.AllocsPerRun(1000, func() {
		calls.Answer(3 * time.Millisecond)
		calls.Answer(2 * latency.Bound)
		calls.Fail(14, time.Millisecond)
		calls.Fail(99, -1)
	}); n != 0 {
		t.Errorf("recording four calls allocates %v times", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	h := latency.New()
	all := latencies(1<<12, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Record(all[i&(1<<12-1)])
	}
}
