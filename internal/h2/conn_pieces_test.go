package h2

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// story is a connection's worth of bytes with everything that can be cut at a
// bad place. It ends with a connection error.
func story() []byte {
	w := wire().preface().settings(windowSize(50000), http2.Setting{ID: http2.SettingMaxFrameSize, Val: 20000})
	w.request(1, false, "first", "call").data(1, false, "hello").padded(1, false, "padded", 7)
	w.fragments(3, false, 9, ":method", "GET", ":scheme", "http", ":path", "/long", "x", strings.Repeat("x", 90))
	w.data(1, false, "a run").data(1, false, " of").data(1, false, "").data(1, false, " frames").padded(1, false, ".", 3)
	w.padded(3, true, "", 30).data(1, true, strings.Repeat("y", 3000))
	w.request(5, true, "Bad", "name").request(7, false).rst(7, Cancel).data(7, false, "late")
	w.ping(false, "12345678").frame(0x33, 1, 9, "unknown").frame(framePriority, 0, 9, "12345")
	w.request(9, false).window(9, 0).request(11, false).data(11, true, "").window(0, 77)
	w.settings(windowSize(10)).request(13, true).headers(13, true, "too", "late")
	w.request(15, false, contentLength, "5").data(15, false, "more than five").data(15, true, "late")
	w.request(17, false, contentLength, "5").padded(17, false, "fi", 3).data(17, false, "ve").data(17, true, "!")
	w.request(19, false, contentLength, "5").data(19, false, "fo").data(19, true, "ur")
	w.goAway(0, NoError).ping(true, "pongpong")
	return w.frame(framePing, 0, 0, "short").b.Bytes()
}

// outcome is what a server engine with an answering handler makes of bytes that
// come in these pieces: what the handler was told, and what was
// written.
func outcome(t *testing.T, in []byte, cut func(rest []byte) int) (told, written []string, failed error) {
	t.Helper()
	r := newRig(t, true)
	r.onHeaders = func(s *Stream, _ bool) {
		if !s.SentHead() {
			r.conn.WriteHeaders(s, false, statelessAnswer)
		}
	}
	r.onData = func(s *Stream, p []byte, end bool) {
		r.conn.Credit(s, len(p))
		if end {
			r.conn.WriteHeaders(s, true, statelessTrailers)
		}
	}
	for len(in) > 0 && failed == nil {
		n := cut(in)
		piece := slices.Clone(in[:n]) // the engine must not keep it
		failed = r.conn.Feed(piece, r.now)
		clear(piece)
		in = in[n:]
	}
	return joinData(r.log), r.frames(), failed
}

// joinData leaves of DATA only where a stream ended: the rest depends on how
// the bytes came.
func joinData(log []string) (joined []string) {
	for _, line := range log {
		fields := strings.Fields(line)
		switch {
		case fields[0] != "data":
			joined = append(joined, line)
		case fields[len(fields)-1] == "END":
			joined = append(joined, "end of data "+fields[1])
		}
	}
	return joined
}

// Whole, byte by byte and in random pieces: the same bytes mean the same.
func TestPiecesMeanTheSame(t *testing.T) {
	in := story()
	whole := func(rest []byte) int { return len(rest) }
	told, written, failed := outcome(t, in, whole)
	testkit.Need(t, failed != nil && failed.Error() == "FRAME_SIZE_ERROR: ping_size", "the story ends with %v", failed)
	same := func(name string, cut func([]byte) int) {
		t.Helper()
		gotTold, gotWritten, gotFailed := outcome(t, in, cut)
		testkit.Need(t, slices.Equal(gotTold, told), "%s: told\n%s\nwant\n%s", name, strings.Join(gotTold, "\n"), strings.Join(told, "\n"))
		testkit.Need(t, slices.Equal(gotWritten, written),
			"%s: written\n%s\nwant\n%s", name, strings.Join(gotWritten, "\n"), strings.Join(written, "\n"))
		testkit.Need(t, gotFailed != nil && gotFailed.Error() == failed.Error(), "%s: %v, want %v", name, gotFailed, failed)
	}
	same("byte by byte", func([]byte) int { return 1 })
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 22))
		most := 1 + rnd.IntN(200)
		same("random", func(rest []byte) int { return min(len(rest), 1+rnd.IntN(most)) })
	}
}

// The bytes of DATA arrive whole and in order, however they were cut.
func TestDataInPieces(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		var want, got strings.Builder
		in := wire().request(1, false)
		for range 10 {
			part := strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(500))
			want.WriteString(part)
			if rnd.IntN(2) == 0 {
				in.padded(1, false, part, rnd.IntN(256))
			} else {
				in.data(1, false, part)
			}
		}
		r := newServer(t)
		r.onData = func(_ *Stream, p []byte, _ bool) { got.Write(p) }
		for b := in.data(1, true, "").b.Bytes(); len(b) > 0; {
			n := min(len(b), 1+rnd.IntN(300))
			r.feed(wire().raw(b[:n]))
			b = b[n:]
		}
		testkit.Need(t, got.String() == want.String() && r.streams[1].remoteDone,
			"seed %d: got %d bytes, want %d", seed, got.Len(), want.Len())
	}
}

// A run of DATA frames of one stream is told as one, up to the first frame that
// needs a look of its own; windows count all of them.
func TestRunOfData(t *testing.T) {
	small := func(c *Config) { c.Window = 10 }
	tests := []struct {
		name string
		in   func(w *wireBytes)
		want []string
	}{
		{"all", func(w *wireBytes) { w.data(1, false, "ab").data(1, false, "c").data(1, true, "de") }, []string{"data 1 abcde END"}},
		{"another stream", func(w *wireBytes) { w.data(1, false, "ab").data(1, false, "c").data(3, false, "x").data(1, false, "d") },
			[]string{"data 1 abc", "data 3 x", "data 1 d"}},
		{"another frame", func(w *wireBytes) { w.data(1, false, "a").ping(false, "12345678").data(1, false, "b") }, []string{"data 1 a", "data 1 b"}},
		{"padded", func(w *wireBytes) {
			w.data(1, false, "a").data(1, false, "b").padded(1, false, "c", 2).data(1, false, "d")
		},
			[]string{"data 1 ab", "data 1 c", "data 1 d"}},
		{"empty", func(w *wireBytes) { w.data(1, false, "a").data(1, false, "").data(1, false, "b").data(1, true, "") },
			[]string{"data 1 a", "data 1 b", "data 1  END"}},
		{"up to the window", func(w *wireBytes) { w.data(1, false, "12345").data(1, false, "67890") }, []string{"data 1 1234567890"}},
		{"beyond the window", func(w *wireBytes) { w.data(1, false, "12345").data(1, false, "67890").data(1, false, "!") },
			[]string{"data 1 1234567890", "reset 1 FLOW_CONTROL_ERROR by engine"}},
		{"after the end", func(w *wireBytes) { w.data(1, false, "a").data(1, true, "b").data(1, false, "c") },
			[]string{"data 1 ab END", "reset 1 STREAM_CLOSED by engine"}},
		{"half a frame", func(w *wireBytes) {
			w.data(1, false, "a").data(1, false, "b").raw([]byte{0, 0, 8, 0, 0, 0, 0, 0, 1, 'c'})
		},
			[]string{"data 1 ab", "data 1 c"}},
		{"half a header", func(w *wireBytes) { w.data(1, false, "a").data(1, false, "b").raw([]byte{0, 0, 9, 0}) }, []string{"data 1 ab"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newServer(t, small)
			r.feed(wire().settingsAck().request(1, false).request(3, false))
			r.wantLog("headers 1 :path=/s/m", "headers 3 :path=/s/m")
			w := wire()
			test.in(w)
			r.feed(w)
			r.wantLog(test.want...)
		})
	}
}

// follower notes whether DATA was said to follow HEADERS.
type follower struct {
	Handler
	conn    *Conn
	follows []bool
}

func (f *follower) Headers(s *Stream, b *Block, end bool) {
	f.follows = append(f.follows, f.conn.Follows(s))
	f.Handler.Headers(s, b, end)
}

// What is said to follow does, in the same Feed, however the frames are cut.
func TestFollows(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes *wireBytes
		want  bool
	}{
		{"DATA", wire().request(1, false).data(1, false, "x"), true},
		{"DATA and more", wire().request(1, false).data(1, false, "x").data(1, true, "y"), true},
		{"the end", wire().request(1, false).data(1, true, "x"), true},
		{"empty DATA", wire().request(1, false).data(1, false, ""), false},
		{"padding alone", wire().request(1, false).frame(frameData, flagPadded, 1, "\x03\x00\x00\x00"), false},
		{"DATA of another stream", wire().request(1, false).request(3, false).data(1, false, "x"), false},
		{"trailers", wire().request(1, false).headers(1, true, "a", "b"), false},
		{"nothing", wire().request(1, false), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newServer(t)
			f := &follower{Handler: r.conn.h, conn: r.conn}
			r.conn.h = f
			r.feed(tt.bytes)
			testkit.Want(t, f.follows[0] == tt.want, "says %v", f.follows[0])
			testkit.Want(t, r.conn.behind == nil, "bytes of the reader are kept")
		})
	}
	all := wire().request(1, false).data(1, false, "xy")
	whole := all.b.Bytes()
	for cut := range whole {
		r := newServer(t)
		f := &follower{Handler: r.conn.h, conn: r.conn}
		r.conn.h = f
		testkit.Must(t, r.conn.Feed(bytes.Clone(whole[:cut]), r.now))
		if len(f.follows) == 1 && f.follows[0] != (cut > len(whole)-2) {
			t.Errorf("cut before byte %d it says %v", cut, f.follows[0])
		}
	}
}
