package latency_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
)

// text returns a histogram as it is written.
func text(t testing.TB, h *latency.Histogram) string {
	t.Helper()
	data, err := h.MarshalText()
	testkit.Must(t, err)
	return string(data)
}

func TestEncodedAndBack(t *testing.T) {
	h := latency.New()
	for _, d := range latencies(50_000, 3) {
		h.Record(d)
	}
	h.Record(0)
	h.Record(2 * latency.Bound)
	read := latency.New()
	testkit.Must(t, read.UnmarshalText([]byte(text(t, h))))
	testkit.Want(t, text(t, read) == text(t, h) && read.Count() == h.Count(), "read %d calls, want %d", read.Count(), h.Count())
	read.Record(time.Second) // one that was read goes on counting
	testkit.Want(t, read.Count() == h.Count()+1, "%d calls after one more, want %d", read.Count(), h.Count()+1)
}

// The text in testdata was written by the Python library, hdrhistogram 0.10.8:
// 12,345 ns times 1 to 10,000, an hour, and zero. The figures are its own.
func TestReadsWhatPythonWrote(t *testing.T) {
	data := testkit.ReadFile(t, "testdata/written-by-python.txt")
	h := latency.New()
	testkit.Must(t, h.UnmarshalText(bytes.TrimSpace(data)))
	p50, p99 := h.Quantile(0.5).Value, h.Quantile(0.99).Value
	testkit.Want(t, h.Count() == 10_002 && p50 == 61734911 && p99 == 122290175 && h.Max() == latency.Bound && h.At(0) == 0,
		"%d calls, p50 %d, p99 %d, from %v to %v", h.Count(), p50, p99, h.At(0), h.Max())
}

// Bad input gives one line and leaves the histogram as it was.
func TestDecodingRefuses(t *testing.T) {
	other, err := hdrhistogram.New(1, int64(time.Minute), 3).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	testkit.Must(t, err)
	good := text(t, latency.New())
	for input, want := range map[string]string{
		"":                "too short",
		"no base64":       "illegal base64 data",
		good[:40]:         "smaller than",
		string(other):     "its range or its digits are others",
		"XXXX" + good[4:]: "encoding not supported",
	} {
		h := latency.New()
		h.Record(time.Second)
		before := text(t, h)
		err := h.UnmarshalText([]byte(input))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "histogram: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: error %v, want: %s", input, err, want)
		}
		testkit.Want(t, text(t, h) == before, "%.40q changed the histogram", input)
	}
}

func FuzzUnmarshalText(f *testing.F) {
	f.Add([]byte(text(f, latency.New())))
	f.Add([]byte("HISTFAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h, again latency.Histogram
		if err := h.UnmarshalText(data); err != nil {
			testkit.Want(t, !strings.Contains(err.Error(), "\n"), "more than a line: %q", err)
			return
		}
		err := again.UnmarshalText([]byte(text(t, &h)))
		testkit.Need(t, err == nil && text(t, &again) == text(t, &h), "read, written, and other: %v", err)
	})
}
