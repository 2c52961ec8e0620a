package h2

import (
	"testing"
)

// echo answers every request with its own bytes, as a relay does with a
// worker's: credit goes back when they leave. What it is told of a stream must
// make sense: nothing behind the end of either kind, and one end for each.
type echo struct {
	conn    *Conn
	waiting map[*Stream][]byte
	ended   map[*Stream]bool
	begun   int // streams that were opened, by either side
	over    map[*Stream]bool
}

func newEcho(server bool, budget *Budget, block *Block) *echo {
	e := &echo{waiting: map[*Stream][]byte{}, ended: map[*Stream]bool{}, over: map[*Stream]bool{}}
	cfg := testConfig(server)
	cfg.MaxStreams, cfg.MaxHeaderList, cfg.OutputHigh = 20, 2000, 30000
	cfg.Window, cfg.MaxWindow, cfg.ConnWindow = 2000, 8000, 65536
	e.conn = NewConn(cfg, e, NewPool(budget), block, e)
	return e
}

func (e *echo) Dirty(*Conn)                   {}
func (e *echo) GoAway(*Conn, uint32, ErrCode) {}
func (e *echo) Pong(*Conn, [8]byte)           {}

func (e *echo) Accept(*Conn, *Block) *Stream {
	e.begun++
	return &Stream{}
}

// told panics if there is nothing more to be told of the stream.
func (e *echo) told(s *Stream) {
	if e.over[s] || e.ended[s] {
		panic("told of a stream that has ended")
	}
}

// end takes the one end of a stream.
func (e *echo) end(s *Stream) {
	if e.over[s] {
		panic("a stream has ended twice")
	}
	e.over[s] = true
	delete(e.waiting, s)
}

func (e *echo) Headers(s *Stream, b *Block, end bool) {
	e.told(s)
	if _, err := DecodeFields(b.Enc); err != nil {
		panic(err)
	}
	if !s.SentHead() {
		e.conn.WriteHeaders(s, false, statelessAnswer)
	}
	e.Data(s, nil, end)
}

func (e *echo) TooLarge(s *Stream, _ bool) {
	e.told(s)
	e.conn.Reset(s, Cancel)
	e.end(s)
}

func (e *echo) Data(s *Stream, p []byte, end bool) {
	e.told(s)
	e.waiting[s] = append(e.waiting[s], p...)
	e.ended[s] = end
	e.Writable(s)
}

func (e *echo) Writable(s *Stream) {
	p := e.waiting[s]
	for len(p) > 0 {
		n := min(len(p), e.conn.Writable(s))
		if n == 0 {
			e.conn.Want(s)
			break
		}
		e.conn.WriteData(s, p[:n], false)
		e.conn.Credit(s, n)
		p = p[n:]
	}
	e.waiting[s] = p
	if len(p) == 0 && e.ended[s] && s.SentHead() {
		e.conn.WriteHeaders(s, true, statelessTrailers)
		e.end(s)
	}
}

func (e *echo) Reset(s *Stream, _ ErrCode, _ bool) { e.end(s) }

func (e *echo) Lost(s *Stream, _ bool) { e.end(s) }

// step feeds one piece, half of the time takes part of the output.
func (e *echo) step(t *testing.T, piece []byte, out []byte) ([]byte, bool) {
	t.Helper()
	if err := e.conn.Feed(piece, 0); err != nil {
		return append(out, e.conn.Output()...), false
	}
	if n := len(e.conn.Output()); len(piece)%2 == 0 {
		out = append(out, e.conn.Output()[:n/2+1&n]...)
		e.conn.Sent(n/2 + 1&n)
	}
	e.check(t)
	return out, true
}

// check holds what must be true between any two calls.
func (e *echo) check(t *testing.T) {
	t.Helper()
	c, n := e.conn, 0
	c.Each(func(s *Stream) {
		n++
		if s.conn != c || c.streams.get(s.id) != s {
			t.Fatalf("stream %d is not where it should be", s.id)
		}
		if s.wants && s.sendWindow > 0 && !s.queued {
			t.Fatalf("stream %d waits and is in no list", s.id)
		}
	})
	if n != c.Streams() {
		t.Fatalf("%d streams are counted, %d found", c.Streams(), n)
	}
	if c.waiting.head != nil && c.room() > 0 {
		t.Fatal("a stream waits though there is room")
	}
	if c.recvWindow < 0 || c.pending() < 0 {
		t.Fatalf("window %d, pending %d", c.recvWindow, c.pending())
	}
}

// FuzzConn hands arbitrary bytes to an engine of either role: it never panics,
// writes frames and nothing else, and gives every buffer back.
func FuzzConn(f *testing.F) {
	f.Add(story(), uint8(0))
	f.Add(story(), uint8(7))
	f.Add(wire().settings().answer(1, false).data(1, true, "hello").goAway(1, NoError).b.Bytes(), uint8(3))
	for _, tt := range connErrors {
		w := wire()
		if tt.state.server {
			w.preface()
		}
		f.Add(w.settings().raw(tt.in.b.Bytes()).b.Bytes(), uint8(11))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		for _, server := range []bool{true, false} {
			fuzzConn(t, server, in, int(size)+1)
		}
	})
}

func fuzzConn(t *testing.T, server bool, in []byte, size int) {
	t.Helper()
	budget, block := &Budget{Total: 1 << 20}, &Block{}
	e := newEcho(server, budget, block)
	var out []byte
	if !server {
		e.openSome(in)
	}
	for ok := true; ok && len(in) > 0; {
		n := min(size, len(in))
		out, ok = e.step(t, in[:n], out)
		in = in[n:]
	}
	e.conn.Close()
	if budget.Used() != 0 || e.conn.Streams() != 0 {
		t.Fatalf("after Close: %d bytes, %d streams", budget.Used(), e.conn.Streams())
	}
	if len(e.over) != e.begun || len(e.waiting) != 0 {
		t.Fatalf("%d streams of %d have ended, %d wait", len(e.over), e.begun, len(e.waiting))
	}
	checkFrames(t, server, out)
}

// openSome begins streams of a client, so that there is something to answer.
func (e *echo) openSome(in []byte) {
	for i := range min(len(in), 6) {
		s := &Stream{}
		e.begun++
		e.conn.Open(s, in[i]%2 == 0, statelessRequest)
		switch {
		case in[i]%5 == 0 && e.conn.Unsend(s):
			e.end(s)
		case in[i]%7 == 0:
			e.conn.Reset(s, Cancel)
			e.end(s)
		}
	}
}
