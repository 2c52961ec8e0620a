package latency_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// The library's reader stands for the tools of others: it reads our log, with
// times since 1970.
func TestLogReadByTheLibrary(t *testing.T) {
	want := []latency.Tagged{{Latencies: latency.New()}, {Tag: "cabrank", Latencies: latency.New()}}
	for i := range want {
		for _, d := range latencies(3000, uint64(i)) {
			want[i].Latencies.Record(d)
		}
	}
	log, err := latency.Log(time.Unix(1700000000, 123456789), 1500*time.Millisecond, want)
	if err != nil {
		t.Fatal(err)
	}
	reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(log))
	for _, one := range want {
		got, err := reader.NextIntervalHistogram()
		if err != nil || got == nil {
			t.Fatalf("read %v, %v", got, err)
		}
		if got.Tag() != one.Tag || got.StartTimeMs() != 1700000000_000 || got.EndTimeMs() != 1700000001_500 {
			t.Errorf("%q from %d to %d, want %q for 1.5 s", got.Tag(), got.StartTimeMs(), got.EndTimeMs(), one.Tag)
		}
		if got.TotalCount() != one.Latencies.Count() || got.ValueAtPercentile(99) != int64(one.Latencies.At(0.99)) {
			t.Errorf("%d calls, want %d", got.TotalCount(), one.Latencies.Count())
		}
	}
}
