package peers

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/measure"
)

func noHistograms(t *testing.T) *histograms {
	t.Helper()
	h, err := newHistograms(filepath.Join(t.TempDir(), "histograms"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

// recorded is a histogram of some calls of the same length.
func recorded(calls int, d time.Duration) *latency.Histogram {
	h := latency.New()
	for range calls {
		h.Record(d)
	}
	return h
}

// The log has a line for each histogram of a run, and the run has none left.
func TestHistogramsAreKept(t *testing.T) {
	kept := noHistograms(t)
	kept.began = time.Now().Add(-time.Minute)
	runs := []run{
		{Peer: "cabrank", Workload: "u16", Phase: phaseMax},
		{Peer: "envoy", Workload: "r4k", Phase: phaseRate, Repeat: 2},
		{Peer: "cabrank", Workload: "idle1k", Phase: phaseIdle},
	}
	runs[0].Result = measure.Result{Seconds: 2, Latencies: recorded(3, time.Millisecond)}
	runs[1].Result = measure.Result{Seconds: 1, Latencies: recorded(4, time.Second), Lags: recorded(5, time.Microsecond)}
	for i := range runs {
		if err := kept.take(&runs[i]); err != nil || runs[i].Latencies != nil || runs[i].Lags != nil {
			t.Fatalf("%v, run %+v", err, runs[i])
		}
	}
	path := filepath.Join(t.TempDir(), "kept.hlog")
	if err := kept.saveAs(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{"u16/max/cabrank/1/latency": 3, "r4k/rate/envoy/3/latency": 4, "r4k/rate/envoy/3/lag": 5}
	log := hdrhistogram.NewHistogramLogReader(bytes.NewReader(text))
	for range len(counts) {
		i, err := log.NextIntervalHistogram()
		if err != nil || i == nil {
			t.Fatalf("%v, %v", i, err)
		}
		if want := counts[i.Tag()]; i.TotalCount() != want || i.EndTimeMs()-i.StartTimeMs() < 1000 {
			t.Errorf("%q: %d calls, want %d", i.Tag(), i.TotalCount(), want)
		}
		delete(counts, i.Tag())
	}
	if len(counts) > 0 {
		t.Errorf("not in the log: %v", counts)
	}
}

// What cannot be kept whole is not kept at all.
func TestSaveLeavesNoHalf(t *testing.T) {
	r, _ := sample(t, "cabrank,haproxy-tcp", []float64{2, 1})
	r.Date, r.Commit = "2026-11-23T00:00:00Z", "abc"
	kept, dir := noHistograms(t), t.TempDir()
	kept.close()
	if _, err := r.save(dir, kept); err == nil {
		t.Error("histograms that cannot be read were saved")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
