package latency_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// readAll reads a log up to its end or its first error.
func readAll(t *testing.T, text string) (all []latency.Interval, failed error) {
	t.Helper()
	for interval, err := range latency.ReadLog(strings.NewReader(text)) {
		if failed != nil {
			t.Error("a log goes on after an error")
		}
		if failed = err; err == nil {
			all = append(all, interval)
		}
	}
	return all, failed
}

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

func same(t *testing.T, got, want latency.Interval) {
	t.Helper()
	if got.Tag != want.Tag || got.Start != want.Start || got.Length != want.Length {
		t.Errorf("interval %q at %v for %v, want %q at %v for %v", got.Tag, got.Start, got.Length, want.Tag, want.Start, want.Length)
	}
	if text(t, got.Latencies) != text(t, want.Latencies) {
		t.Errorf("%d calls, want %d", got.Latencies.Count(), want.Latencies.Count())
	}
}

func TestLogWrittenAndRead(t *testing.T) {
	log, want := written(t)
	got, err := readAll(t, log)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d intervals (%v), want %d", len(got), err, len(want))
	}
	for i := range want {
		same(t, got[i], want[i])
	}
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
		if got.TotalCount() != interval.Latencies.Count() {
			t.Errorf("%d calls, want %d", got.TotalCount(), interval.Latencies.Count())
		}
	}
}

// The log in testdata was written by hdr-histogram-js 3.0.1: 12,345 ns times 1
// to 1,000, then 777 ns times 1 to 20,000. The figures are its own.
func TestReadsALogOfJavaScript(t *testing.T) {
	data, err := os.ReadFile("testdata/written-by-js.hlog")
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, string(data))
	if err != nil || len(got) != 2 {
		t.Fatalf("%d intervals, %v", len(got), err)
	}
	for i, want := range []struct {
		tag           string
		start, length time.Duration
		count         int64
		p50           time.Duration
	}{
		{"", 127 * time.Millisecond, 1007 * time.Millisecond, 1000, 6172671},
		{"cabrank", 1134 * time.Millisecond, 999 * time.Millisecond, 20_000, 7770111},
	} {
		g := got[i]
		if g.Tag != want.tag || g.Start != want.start || g.Length != want.length {
			t.Errorf("interval %q at %v for %v, want %+v", g.Tag, g.Start, g.Length, want)
		}
		if g.Latencies.Count() != want.count || g.Latencies.Quantile(0.5).Value != want.p50 {
			t.Errorf("%d calls, p50 %v; want %+v", g.Latencies.Count(), g.Latencies.Quantile(0.5), want)
		}
	}
}

func TestLogRefused(t *testing.T) {
	histogram := text(t, latency.New())
	for _, tc := range []struct{ log, want string }{
		{"0,1,2", "histogram log: line 1: 3 fields, want start, length, maximum and histogram"},
		{"# head\n\nTag=a", "histogram log: line 3: 1 fields, want start, length, maximum and histogram"},
		{"x,1,2," + histogram, `histogram log: line 1: "x" is not a number of seconds from 0 to 9000000000`},
		{"0,NaN,2," + histogram, `histogram log: line 1: "NaN" is not a number of seconds from 0 to 9000000000`},
		{"-1,1,2," + histogram, `histogram log: line 1: "-1" is not a number of seconds from 0 to 9000000000`},
		{"0,1,2," + histogram + "\n0,1,2,HIST", "histogram log: line 2: histogram: cut off before its head ends"},
		{strings.Repeat("0", 1<<20), "histogram log: line 1: more than 528384 bytes"},
	} {
		_, err := readAll(t, tc.log)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%.30q: error %v, want %s", tc.log, err, tc.want)
		}
	}
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

func FuzzReadLog(f *testing.F) {
	log, _ := written(f)
	f.Add(log)
	f.Add("Tag=a,0,1,2,HISTFAAA\n#\n\n\"StartTimestamp\"\n")
	f.Fuzz(func(t *testing.T, log string) {
		got, err := readAll(t, log)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
		for _, i := range got {
			if i.Start < 0 || i.Length < 0 || i.Latencies.Count() < 0 {
				t.Errorf("%+v", i)
			}
		}
	})
}
