package h2

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// FuzzFrame compares the reading and the writing of frames with x/net: the
// header of any frame, and what padding and priority leave of a HEADERS frame.
func FuzzFrame(f *testing.F) {
	f.Add(uint8(frameData), uint8(flagEndStream), uint32(1), []byte("hello"))
	f.Add(uint8(frameHeaders), uint8(flagPadded|flagPriority), uint32(3), []byte("\x02\x80\x00\x00\x05\x10blockpp"))
	f.Add(uint8(frameHeaders), uint8(flagPadded), uint32(5), []byte("\x09short"))
	f.Add(uint8(frameHeaders), uint8(flagPadded), uint32(5), []byte(nil))
	f.Add(uint8(frameHeaders), uint8(flagPriority), uint32(7), []byte("four"))
	f.Add(uint8(0xff), uint8(0xff), uint32(1<<32-1), []byte{0})
	f.Fuzz(func(t *testing.T, kind, flags uint8, stream uint32, payload []byte) {
		payload = payload[:min(len(payload), defaultMaxFrame)]
		wire := appendFrameHeader(nil, len(payload), frameType(kind), flags, stream)
		want, err := http2.ReadFrameHeader(bytes.NewReader(wire))
		testkit.Must(t, err)
		h := parseFrameHeader(wire)
		if h.length != want.Length || uint8(h.kind) != uint8(want.Type) || h.flags != uint8(want.Flags) || h.stream != want.StreamID {
			t.Fatalf("% x: got %+v, want %v", wire, h, want)
		}
		if h.kind == frameHeaders && h.stream != 0 {
			comparePadding(t, h, append(wire, payload...))
		}
	})
}

// comparePadding reads the payload of a HEADERS frame in both ways.
func comparePadding(t *testing.T, h frameHeader, wire []byte) {
	t.Helper()
	got, dependsOn, ours := stripPadding(h, wire[frameHeaderLen:])
	frame, err := http2.NewFramer(nil, bytes.NewReader(wire)).ReadFrame()
	testkit.Need(t, (ours == nil) == (err == nil), "% x: %v, x/net says %v", wire, ours, err)
	if err != nil {
		return
	}
	want := frame.(*http2.HeadersFrame)
	testkit.Want(t, bytes.Equal(got, want.HeaderBlockFragment()) && dependsOn == want.Priority.StreamDep,
		"% x: got %q behind %d, want %q behind %d", wire, got, dependsOn, want.HeaderBlockFragment(), want.Priority.StreamDep)
}
