package latency

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// mostText is how long an encoded histogram may be: 34,000 counts of 9
	// bytes that do not compress, in base64, and some more.
	mostText = 512 << 10

	// mostCalls is how many calls a histogram that is read may hold: up to
	// here sums and means are exact in floating point.
	mostCalls = 1 << 53

	// The head of the encoding: a cookie and the length of what is compressed,
	// 8 bytes; then, compressed, 40 bytes that describe the histogram.
	outerHead = 8
	innerHead = hdrhistogram.ENCODING_HEADER_SIZE
)

// MarshalText writes the histogram in the form that the HdrHistogram tools
// read: V2, compressed, in base64. Values are nanoseconds.
func (h *Histogram) MarshalText() ([]byte, error) {
	return h.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads what MarshalText or another HdrHistogram tool has
// written: values of one nanosecond and up, with three digits. The form does
// not tell the unit; a histogram of something else than nanoseconds is read
// as if it were. What is above Bound counts as Bound, as with Record.
//
// Errors: one line for anything else; h is then as it was. It takes at most
// some megabytes, whatever it is given.
func (h *Histogram) UnmarshalText(text []byte) error {
	if len(text) > mostText {
		return fmt.Errorf("histogram: %d bytes, at most %d are read", len(text), mostText)
	}
	if err := checkGeometry(text); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	hdr, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if n := hdr.TotalCount(); n > mostCalls {
		return fmt.Errorf("histogram: %d values, at most 2^53 are read", n)
	}
	*h = *inRange(hdr)
	return nil
}

// checkGeometry looks at the head before anything is allocated that the head
// asks for: five digits up to the largest number would be 50 MB.
func checkGeometry(text []byte) error {
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return err
	}
	if len(data) < outerHead {
		return errors.New("cut off before its head ends")
	}
	z, err := zlib.NewReader(bytes.NewReader(data[outerHead:]))
	if err != nil {
		return err
	}
	head := make([]byte, innerHead)
	if _, err := io.ReadFull(z, head); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	// Source: HdrHistogram, AbstractHistogram.encodeIntoByteBuffer: cookie,
	// length and offset are before the digits, the lowest value is behind.
	precision := int32(binary.BigEndian.Uint32(head[12:]))
	lowest := int64(binary.BigEndian.Uint64(head[16:]))
	if precision != digits || lowest != 1 {
		return fmt.Errorf("%d digits from %d up, only %d digits from 1 up are read", precision, lowest, digits)
	}
	return nil
}

// inRange returns a histogram with the range of New. The buckets of histograms
// with the same digits and the same lowest value are the same, so that only
// what is above Bound changes.
func inRange(hdr *hdrhistogram.Histogram) *Histogram {
	if hdr.HighestTrackableValue() == int64(Bound) {
		return &Histogram{hdr: hdr}
	}
	h := New()
	for _, bar := range hdr.Distribution() {
		_ = h.hdr.RecordValues(min(bar.From, int64(Bound)), bar.Count)
	}
	return h
}
