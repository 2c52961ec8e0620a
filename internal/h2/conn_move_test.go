package h2

import (
	"fmt"
	"testing"
)

// A stream that is moved goes on in its new memory: in the table, in the middle
// of a DATA frame, on the list of those that wait, and at the end.
func TestMove(t *testing.T) {
	r := newClient(t)
	streams := []*Stream{r.open(false), r.open(false), r.open(false)}
	was, is := streams[1], &Stream{Owner: "new"}
	was.Owner = "old"
	r.feed(wire().answer(3, false).raw(wire().data(3, false, "one two").b.Bytes()[:9+4]))
	r.conn.Move(was, is)
	if was.Open() || was.ID() != 0 || was.Owner != "old" || is.ID() != 3 || is.Conn() != r.conn || is.Owner != "new" {
		t.Fatalf("moved from %+v to %+v", was, is)
	}
	r.onData = func(s *Stream, _ []byte, _ bool) {
		if s != is {
			t.Error("the old memory is told of data")
		}
	}
	r.feed(wire().raw([]byte("two")))
	r.wantLog("headers 3 :status=200", "data 3 one ", "data 3 two")
	r.conn.WriteData(is, []byte("up"), true)
	r.feed(wire().data(3, true, "."))
	if is.Open() || r.conn.Streams() != 2 {
		t.Error("the stream has not ended")
	}
	was.Clear()
}

// Among streams that wait for room the moved one keeps its place.
func TestMoveOfWaiting(t *testing.T) {
	for place := range 3 {
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			r := newClient(t)
			streams := []*Stream{r.open(false), r.open(false), r.open(false)}
			left := map[*Stream]int{}
			r.onWritable = pump(r, left)
			large := r.open(false) // takes the connection's window
			left[large] = 65535
			r.onWritable(large)
			for _, s := range streams {
				left[s] = 1
				r.onWritable(s)
			}
			moved := &Stream{}
			r.conn.Move(streams[place], moved)
			left[moved] = 1
			r.frames()
			r.log = nil
			r.feed(wire().window(0, 1<<20))
			r.wantLog("writable 1", "writable 3", "writable 5")
		})
	}
}

// Move in the middle of what the handler is told: its end finishes neither.
func TestMoveWhileTold(t *testing.T) {
	r := newClient(t)
	was, is := r.open(true), &Stream{}
	r.onHeaders = func(s *Stream, _ bool) {
		r.conn.Move(s, is)
		r.conn.Reset(is, Cancel) // both sides have ended: without a frame
	}
	r.frames()
	r.feed(wire().answer(1, true))
	r.wantFrames()
	if was.Open() || is.Open() || r.conn.Streams() != 0 {
		t.Error("a stream is left")
	}
}

func TestMoveOfNothing(t *testing.T) {
	r := newClient(t)
	a, b := r.open(true), r.open(true)
	for name, move := range map[string]func(){
		"not open":      func() { r.conn.Move(&Stream{}, &Stream{}) },
		"onto open one": func() { r.conn.Move(a, b) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			move()
		})
	}
}
