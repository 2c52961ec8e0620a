package latency_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// text returns a histogram as it is written.
func text(t testing.TB, h *latency.Histogram) string {
	t.Helper()
	data, err := h.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
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
	if err := read.UnmarshalText([]byte(text(t, h))); err != nil {
		t.Fatal(err)
	}
	if text(t, read) != text(t, h) || read.Count() != h.Count() {
		t.Errorf("read %d calls, want %d", read.Count(), h.Count())
	}
	read.Record(time.Second) // one that was read goes on counting
	if read.Count() != h.Count()+1 {
		t.Errorf("%d calls after one more, want %d", read.Count(), h.Count()+1)
	}
}

// The text in testdata was written by the Python library, hdrhistogram 0.10.8:
// 12,345 ns times 1 to 10,000, an hour, and zero. The figures are its own.
func TestReadsWhatPythonWrote(t *testing.T) {
	data, err := os.ReadFile("testdata/written-by-python.txt")
	if err != nil {
		t.Fatal(err)
	}
	h := latency.New()
	if err := h.UnmarshalText(bytes.TrimSpace(data)); err != nil {
		t.Fatal(err)
	}
	p50, p99 := h.Quantile(0.5).Value, h.Quantile(0.99).Value
	if h.Count() != 10_002 || p50 != 61734911 || p99 != 122290175 || h.Max() != latency.Bound || h.Min() != 0 {
		t.Errorf("%d calls, p50 %d, p99 %d, from %v to %v", h.Count(), p50, p99, h.Min(), h.Max())
	}
}

// Another range with the same buckets is read without loss, up to the bound.
func TestReadsOtherRanges(t *testing.T) {
	for _, highest := range []int64{int64(time.Minute), math.MaxInt64} {
		other := hdrhistogram.New(1, highest, 3)
		want := latency.New()
		for _, d := range latencies(10_000, 4) {
			d = min(d, time.Minute)
			if err := other.RecordValue(int64(d)); err != nil {
				t.Fatal(err)
			}
			want.Record(d)
		}
		if other.RecordValue(int64(2*latency.Bound)) == nil {
			want.Record(2 * latency.Bound)
		}
		data, err := other.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		var got latency.Histogram
		if err := got.UnmarshalText(data); err != nil {
			t.Fatal(err)
		}
		if text(t, &got) != text(t, want) {
			t.Errorf("up to %d: %d calls, want %d", highest, got.Count(), want.Count())
		}
	}
}

// crafted is an encoding with any head: digits, lowest and highest value, and
// counts as they come.
func crafted(precision int32, lowest, highest int64, counts ...byte) string {
	var inner bytes.Buffer
	for _, field := range []any{hdrhistogram.V2EncodingCookieBase | 0x10, int32(len(counts)), int32(0), precision, lowest, highest, 1.0, counts} {
		binary.Write(&inner, binary.BigEndian, field)
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	z.Write(inner.Bytes())
	z.Close()
	var outer bytes.Buffer
	binary.Write(&outer, binary.BigEndian, hdrhistogram.V2CompressedEncodingCookieBase|0x10)
	binary.Write(&outer, binary.BigEndian, int32(packed.Len()))
	outer.Write(packed.Bytes())
	return base64.StdEncoding.EncodeToString(outer.Bytes())
}

// refused are texts that are no histogram of ours, and why.
func refused() map[string]string {
	huge := bytes.Repeat([]byte{0xff}, 9) // the count -2^62
	huge[8] = 0x7f
	many := append(bytes.Repeat([]byte{0xfe}, 8), 0x7f)
	return map[string]string{
		"":                                 "cut off before its head ends",
		"HISTFAAA":                         "cut off before its head ends",
		"no base64":                        "illegal base64 data",
		crafted(5, 1, math.MaxInt64):       "5 digits from 1 up, only 3 digits from 1 up are read",
		crafted(2, 1, int64(time.Hour)):    "2 digits from 1 up",
		crafted(3, 1000, int64(1e12)):      "3 digits from 1000 up",
		crafted(3, 1, 1e9, huge...):        "corrupt histogram payload",
		crafted(3, 1, 1e9, many...):        "values, at most 2^53 are read",
		crafted(3, 1, 1e9, 0x80):           "truncated",
		crafted(3, 1, 1e9)[:40]:            "unexpected EOF",
		strings.Repeat("A", 1<<20):         "1048576 bytes, at most 524288 are read",
		strings.Repeat("A", 100):           "zlib: invalid header",
		"XXXX" + crafted(3, 1, 1e9, 2)[4:]: "encoding not supported",
	}
}

// Bad input gives one line, leaves the histogram as it was, and takes little
// memory: the head is looked at before anything is allocated for it.
func TestDecodingRefuses(t *testing.T) {
	for input, want := range refused() {
		h := latency.New()
		h.Record(time.Second)
		before := text(t, h)
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		err := h.UnmarshalText([]byte(input))
		runtime.ReadMemStats(&end)
		switch {
		case err == nil:
			t.Errorf("%.40q was read, want: %s", input, want)
		case !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "histogram: ") || strings.Contains(err.Error(), "\n"):
			t.Errorf("%.40q: error %q, want: %s", input, err, want)
		case text(t, h) != before:
			t.Errorf("%.40q changed the histogram", input)
		}
		if took := end.TotalAlloc - start.TotalAlloc; took > 4<<20 {
			t.Errorf("%.40q: %d bytes were allocated", input, took)
		}
	}
}

func FuzzUnmarshalText(f *testing.F) {
	f.Add([]byte(text(f, latency.New())))
	for input := range refused() {
		f.Add([]byte(input[:min(len(input), 200)]))
	}
	f.Fuzz(func(t *testing.T, data []byte) { readTwice(t, data) })
}

// Bytes that are random rarely have the checksum that zlib wants: here the
// fuzzer writes what is inside.
func FuzzCraftedHistogram(f *testing.F) {
	f.Add(int32(3), int64(1), int64(math.MaxInt64), []byte{2, 4, 6})
	f.Add(int32(3), int64(1), int64(latency.Bound), []byte{0x81, 0x80, 0x04, 2})
	f.Add(int32(5), int64(-1), int64(-1), []byte{1})
	f.Fuzz(func(t *testing.T, precision int32, lowest, highest int64, counts []byte) {
		readTwice(t, []byte(crafted(precision, lowest, highest, counts...)))
	})
}

// readTwice reads a text, and if that goes well writes and reads it again.
func readTwice(t *testing.T, data []byte) {
	t.Helper()
	var h, again latency.Histogram
	if err := h.UnmarshalText(data); err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
		return
	}
	if err := again.UnmarshalText([]byte(text(t, &h))); err != nil {
		t.Fatalf("read, written, and refused: %v", err)
	}
	if text(t, &again) != text(t, &h) {
		t.Errorf("%d calls, read again %d", h.Count(), again.Count())
	}
	if h.Max() > latency.Bound || h.Mean() > latency.Bound || h.Min() > h.Max() {
		t.Errorf("min %v, mean %v, max %v", h.Min(), h.Mean(), h.Max())
	}
}
