package h2

import (
	"bytes"
	"testing"
)

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
			if f.follows[0] != tt.want {
				t.Errorf("says %v", f.follows[0])
			}
			if r.conn.behind != nil {
				t.Error("bytes of the reader are kept")
			}
		})
	}
	all := wire().request(1, false).data(1, false, "xy")
	whole := all.b.Bytes()
	for cut := range whole {
		r := newServer(t)
		f := &follower{Handler: r.conn.h, conn: r.conn}
		r.conn.h = f
		if err := r.conn.Feed(bytes.Clone(whole[:cut]), r.now); err != nil {
			t.Fatal(err)
		}
		if len(f.follows) == 1 && f.follows[0] != (cut > len(whole)-2) {
			t.Errorf("cut before byte %d it says %v", cut, f.follows[0])
		}
	}
}
