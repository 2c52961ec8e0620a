package latency_test

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
)

// A figure is at most 0.1 % above what was recorded, over the whole range.
func TestPrecision(t *testing.T) {
	for d := time.Duration(1); d <= latency.Bound; d = d*3/2 + 1 {
		h := latency.New()
		h.Record(d)
		for name, got := range map[string]time.Duration{"max": h.Max(), "mean": h.Mean(), "min": h.At(0), "p99": h.At(0.99)} {
			off := math.Abs(float64(got-d)) / float64(d)
			testkit.Want(t, off <= 0.001, "%s of %v is %v, off by %.4f", name, d, got, off)
		}
	}
}

// What is out of range is counted at the end of the range, and told.
func TestNothingIsDropped(t *testing.T) {
	h := latency.New()
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, 59 * time.Minute, latency.Bound, latency.Bound + 1, math.MaxInt64} {
		h.Record(d)
	}
	testkit.Want(t, h.Count() == 7 && h.At(4./7) < latency.Bound && h.At(5./7) == latency.Bound,
		"%d calls, want 7, of which 3 are at the bound", h.Count())
	testkit.Want(t, h.At(0) == 0 && h.Max() == latency.Bound, "from %v to %v, want 0 to %v", h.At(0), h.Max(), latency.Bound)
}

func TestEmpty(t *testing.T) {
	h := latency.New()
	testkit.Want(t, h.Count() == 0 && h.Mean() == 0 && h.At(0) == 0 && h.Max() == 0,
		"of nothing: %d calls, mean %v, from %v to %v, want zeros", h.Count(), h.Mean(), h.At(0), h.Max())
	q := h.Quantile(0.5)
	testkit.Want(t, q.TooFew, "a quantile of nothing: %+v", q)
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
		testkit.Want(t, !got.TooFew && math.Abs((float64(got.Value-want)/float64(want))) <= 0.001,
			"quantile %v is %+v, want %v", share, got, want)
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
		testkit.Equal(t, latency.Needs(tc.share), tc.needs, "calls that quantile %v needs", tc.share)
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
	got, want := text(t, merged), text(t, whole)
	testkit.Want(t, got == want, "merged %d calls, whole %d, and they differ", merged.Count(), whole.Count())
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

// Failures do not touch the answers, and every one has its code.
func TestFailuresAreKeptApart(t *testing.T) {
	calls := latency.NewCalls()
	calls.Answer(10 * time.Millisecond)
	calls.Answer(20 * time.Millisecond)
	for _, code := range []uint32{4, 14, 14, 0, 17, 1 << 31} {
		calls.Fail(code, time.Second)
	}
	want := map[uint32]int64{2: 3, 4: 1, 14: 2}
	testkit.Want(t, maps.Equal(calls.Codes, want), "codes %v, want %v", calls.Codes, want)
	answered, failed := calls.Answered, calls.Failed
	testkit.Want(t, calls.Count() == 8 && answered.Count() == 2 && failed.Count() == 6,
		"%d calls, %d answered, %d failed; want 8, 2, 6", calls.Count(), answered.Count(), failed.Count())
	testkit.Want(t, answered.Max() <= 21*time.Millisecond && failed.At(0) >= 999*time.Millisecond,
		"answers up to %v, failures from %v", answered.Max(), failed.At(0))
}

func TestCallsMerge(t *testing.T) {
	a, b := latency.NewCalls(), latency.NewCalls()
	a.Answer(time.Millisecond)
	a.Fail(14, time.Second)
	b.Fail(14, time.Second)
	b.Fail(8, time.Second)
	a.Merge(b)
	want := map[uint32]int64{8: 1, 14: 2}
	testkit.Want(t, a.Count() == 4 && maps.Equal(a.Codes, want), "%d calls, codes %v; want 4, %v", a.Count(), a.Codes, want)
	testkit.Want(t, b.Count() == 2, "what was merged has %d calls, had 2", b.Count())
}

func TestCallsAsJSON(t *testing.T) {
	calls := latency.NewCalls()
	for _, d := range latencies(20_000, 1) {
		calls.Answer(d)
	}
	calls.Fail(4, 300*time.Millisecond)
	data, err := json.Marshal(calls)
	testkit.Must(t, err)
	var read latency.Calls
	testkit.Must(t, json.Unmarshal(data, &read))
	testkit.Want(t, read.Count() == calls.Count() && maps.Equal(read.Codes, calls.Codes),
		"read %d calls with the codes %v, want %d with %v", read.Count(), read.Codes, calls.Count(), calls.Codes)
	again, err := json.Marshal(&read)
	testkit.Want(t, err == nil && string(again) == string(data), "written again it differs (%v)", err)
	if len(data) > 32<<10 {
		t.Errorf("20,000 calls take %d bytes", len(data))
	}
}
