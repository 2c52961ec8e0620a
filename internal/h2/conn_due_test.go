package h2

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const frameTime = 10 * time.Second

// A frame, or a header block, that has begun must come to its end; DATA need
// not, nor what is complete.
func TestOverdue(t *testing.T) {
	ping := wire().ping(false, "12345678").b.Bytes()
	head := wire().request(1, true).b.Bytes()
	part := func(w *wireBytes, n int) *wireBytes { return wire().raw(w.b.Bytes()[:n]) }
	block := wire().fragments(1, true, 4, ":method", "POST", ":scheme", "http", ":path", "/s/m", ":authority", "a")
	tests := map[string]struct {
		sent *wireBytes
		want string // empty: it may stay so
	}{
		"nothing":                  {wire(), ""},
		"whole frame":              {wire().ping(false, "12345678"), ""},
		"half of a DATA frame":     {part(wire().request(1, false).data(1, true, "hello"), len(head)+9+2), ""},
		"half of a frame header":   {wire().raw(ping[:5]), "slow_frame"},
		"half of a PING":           {wire().raw(ping[:12]), "slow_frame"},
		"half of a HEADERS frame":  {wire().raw(head[:12]), "slow_headers"},
		"HEADERS without an end":   {part(block, 13), "slow_headers"},
		"half of its CONTINUATION": {part(block, 13+11), "slow_headers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newServer(t, func(c *Config) { c.FrameTime = frameTime })
			r.now = time.Minute
			r.feed(test.sent)
			r.frames()
			due := r.conn.Due()
			if test.want == "" {
				testkit.Want(t, due == 0 && r.conn.Overdue(time.Hour) == nil, "due at %v", due)
				return
			}
			testkit.Want(t, due == r.now+frameTime, "due at %v, want %v", due, r.now+frameTime)
			err := r.conn.Overdue(due - 1)
			testkit.Want(t, err == nil, "too early: %v", err)
			err = r.conn.Overdue(due)
			testkit.Want(t, err != nil && err.Error() == "ENHANCE_YOUR_CALM: "+test.want, "got %v, want %s", err, test.want)
			r.wantFrames("GOAWAY 0 ENHANCE_YOUR_CALM " + test.want)
			testkit.Want(t, r.conn.Due() == 0 && r.conn.Overdue(time.Hour) == nil, "it is due once more")
		})
	}
}

// A header block is not late anew with each of its frames, and each frame has
// its own time.
func TestDueOfEach(t *testing.T) {
	r := newServer(t, func(c *Config) { c.FrameTime = frameTime })
	block := wire().fragments(1, true, 4, ":method", "POST", ":scheme", "http", ":path", "/s/m", ":authority", "a").b.Bytes()
	for at := 0; at < len(block); at += 13 {
		r.now = time.Duration(at/13) * time.Second
		r.feed(wire().raw(block[at:min(at+13, len(block))]))
		due := r.conn.Due()
		testkit.Want(t, due == frameTime || at+13 >= len(block), "at %v due at %v", r.now, due)
	}
	ping := wire().ping(false, "12345678").b.Bytes()
	for range 20 { // there is always one that is not complete
		r.now += time.Second
		r.feed(wire().raw(ping[:3]))
		testkit.Equal(t, r.conn.Due(), r.now+frameTime, "at %v due at", r.now)
		r.feed(wire().raw(ping[3:]))
	}
	testkit.Want(t, r.conn.Due() == 0, "due without a reason")
}

// RFC 9113 4.2: longer frames are announced and taken, but not of kinds that
// never need them.
func TestMaxFrame(t *testing.T) {
	const most = 64 << 10
	long := func(c *Config) { c.MaxFrame, c.ConnWindow, c.Window = most, 1<<20, 1<<20 }
	r := newRig(t, true, long)
	r.feed(wire().preface().settings().settingsAck())
	testkit.Says(t, strings.Join(r.frames(), "; "), "MAX_FRAME_SIZE=65536")
	r.feed(wire().request(1, false))
	r.log = nil
	r.feed(wire().frame(frameData, 0, 1, strings.Repeat("x", most)))
	r.feed(wire().frame(0xbe, 0, 0, strings.Repeat("x", most)))
	r.feed(wire().request(3, true, "x-long", strings.Repeat("\x7f", 15<<10)))
	testkit.Want(t, len(r.log) == 2, "told %d times", len(r.log))
	for kind := range frameType(12) {
		size := most + 1
		if kind >= framePriority && kind <= frameWindowUpdate && kind != framePushPromise {
			size = defaultMaxFrame + 1
		}
		r := newServer(t, long)
		err := r.conn.Feed(wire().frame(kind, 0, 1, strings.Repeat("x", size)).b.Bytes(), 0)
		testkit.Want(t, err != nil && err.Error() == "FRAME_SIZE_ERROR: frame_too_large", "frame of type %d, %d bytes: %v", kind, size, err)
	}
}

// AppendFarewell is an empty SETTINGS and a GOAWAY.
func TestFarewell(t *testing.T) {
	want := "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x0b\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x0b" + "bye"
	got := AppendFarewell(nil, EnhanceYourCalm, "bye")
	testkit.Want(t, bytes.Equal(got, []byte(want)), "got %q", got)
}
