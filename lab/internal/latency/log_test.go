package latency_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// written is a log of two intervals.
func written(t testing.TB) (string, []latency.Interval) {
	t.Helper()
	intervals := []latency.Interval{
		{Start: 250 * time.Millisecond, Length: time.Second, Latencies: latency.New()},
		{Tag: "cabrank", Start: 61 * time.Second, Length: 1500 * time.Millisecond, Latencies: latency.New()},
	}
	for i := range intervals {
		for _, d := range latencies(3000, uint64(i)) {
			intervals[i].Latencies.Record(d)
		}
	}
	var out bytes.Buffer
	log, err := latency.NewLogWriter(&out, time.Unix(1700000000, 123456789))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range intervals {
		if err := log.Write(i); err != nil {
			t.Fatal(err)
		}
	}
	return out.String(), intervals
}

// The library's reader stands for the tools of others: it reads our log, with
// times since 1970.
func TestLogReadByTheLibrary(t *testing.T) {
	log, want := written(t)
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(log))
	for _, interval := range want {
		got, err := reader.NextIntervalHistogram()
		if err != nil || got == nil {
			t.Fatalf("read %v, %v", got, err)
		}
		start := 1700000000_000 + interval.Start.Milliseconds()
		if got.Tag() != interval.Tag || got.StartTimeMs() != start || got.EndTimeMs() != start+interval.Length.Milliseconds() {
			t.Errorf("%q from %d to %d, want %q from %d", got.Tag(), got.StartTimeMs(), got.EndTimeMs(), interval.Tag, start)
		}
		if got.TotalCount() != interval.Latencies.Count() || got.ValueAtPercentile(99) != int64(interval.Latencies.At(0.99)) {
			t.Errorf("%d calls, want %d", got.TotalCount(), interval.Latencies.Count())
		}
	}
}

func TestLogRefused(t *testing.T) {
	log, err := latency.NewLogWriter(&bytes.Buffer{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Write(latency.Interval{Tag: "a,b", Latencies: latency.New()}); err == nil {
		t.Error("a tag with a comma was written")
	}
}

// full is a writer without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestLogWriterTellsOfAFullDisk(t *testing.T) {
	if _, err := latency.NewLogWriter(full{}, time.Time{}); err == nil {
		t.Error("the head of a log was written to a full disk")
	}
}
