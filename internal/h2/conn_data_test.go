package h2

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// DATA is passed on as it arrives, also in the middle of a frame, and never
// kept (RFC 9113 6.1).
func TestPartialData(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, false))
	r.log = nil
	frame := wire().data(1, true, "abcdef").b.Bytes()
	for _, piece := range [][]byte{frame[:4], frame[4:9], frame[9:12], frame[12:13], frame[13:]} {
		r.feed(wire().raw(piece))
		if r.conn.partial != nil && len(piece) != 4 {
			t.Errorf("%d bytes were put aside", len(r.conn.partial))
		}
	}
	r.wantLog("data 1 abc", "data 1 d", "data 1 ef END")
}

// RFC 9113 6.9.1: padding counts for flow control; its credit comes back at
// once, since nobody forwards it.
func TestPaddingIsCredited(t *testing.T) {
	r := newServer(t, func(c *Config) { c.Window, c.MaxWindow = 1000, 1000 })
	r.feed(wire().request(1, false))
	r.feed(wire().padded(1, false, "", 249).padded(1, false, "", 249))
	r.wantFrames("WINDOW 1 +500")
}

// RFC 9113 6.1: an empty DATA frame ends a stream, and is nothing otherwise.
func TestEmptyData(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, false).data(1, false, "").data(1, true, ""))
	r.wantLog("headers 1 :path=/s/m", "data 1  END")
}

// RFC 9113 6.9: the connection's credit comes back on receipt (R11), that of a
// stream only when its owner says so.
func TestCredit(t *testing.T) {
	r := newServer(t, func(c *Config) { c.Window, c.MaxWindow, c.ConnWindow = 1000, 1000, 70000 })
	r.feed(wire().request(1, false))
	s := r.streams[1]
	r.feed(wire().data(1, false, strings.Repeat("x", 1000)))
	r.wantFrames()
	for id := uint32(3); id < 3+2*34; id += 2 {
		r.feed(wire().request(id, false).data(id, false, strings.Repeat("x", 1000)))
	}
	r.wantFrames("WINDOW 0 +35000")
	r.conn.Credit(s, 499)
	r.wantFrames()
	r.conn.Credit(s, 1)
	r.wantFrames("WINDOW 1 +500")
	r.feed(wire().data(1, true, strings.Repeat("x", 500)))
	r.conn.Credit(s, 500)
	r.wantFrames() // it has ended: nobody needs the credit
}

// RFC 9113 6.9: credit that is given ahead is for what is owed first, and moves
// no bound of the window.
func TestAdvance(t *testing.T) {
	r := newServer(t, func(c *Config) { c.Window, c.MaxWindow = 1000, 4000 })
	r.feed(wire().request(1, false))
	s := r.streams[1]
	r.feed(wire().data(1, false, strings.Repeat("x", 1000)))
	r.conn.Credit(s, 200)
	testkit.Want(t, s.Debt() == 200 && s.Window() == 1000, "%d bytes are owed of a window of %d", s.Debt(), s.Window())
	r.conn.Advance(s, 300)
	r.wantFrames("WINDOW 1 +300")
	testkit.Want(t, s.Debt() == 0 && s.Window() == 1000 && s.recvWindow == 300,
		"%d bytes are owed, %d may come, of a window of %d", s.Debt(), s.recvWindow, s.Window())
	r.conn.Advance(s, 0)
	r.feed(wire().data(1, true, "x"))
	r.conn.Advance(s, 100)
	r.wantFrames() // it has ended
}

// RFC 9113 6.9.1: more than the window breaks the stream, more than the
// connection's window breaks the connection.
func TestReceiveWindows(t *testing.T) {
	r := newServer(t, func(c *Config) { c.Window, c.MaxWindow = 100, 100 })
	r.feed(wire().request(1, false).data(1, false, strings.Repeat("x", 100)))
	r.log = nil
	r.feed(wire().data(1, false, "y"))
	r.wantLog("reset 1 FLOW_CONTROL_ERROR by engine")
	r.wantFrames("RST 1 FLOW_CONTROL_ERROR")

	r = newServer(t, func(c *Config) { c.Window, c.MaxWindow, c.ConnWindow = 1<<20, 1<<20, 65535 })
	r.feed(wire().request(1, false))
	r.conn.recvWindow = 99
	r.fail(wire().data(1, false, strings.Repeat("x", 100)), "FLOW_CONTROL_ERROR: data_over_connection_window")
}

// R11: the window of a stream doubles as its bytes are forwarded, up to the
// bound, but not while the budget is pressed.
func TestWindowGrows(t *testing.T) {
	r := newServer(t, func(c *Config) { c.Window, c.MaxWindow = 1000, 3000 })
	r.feed(wire().request(1, false))
	s := r.streams[1]
	spend := func(n int) {
		t.Helper()
		r.feed(wire().data(1, false, strings.Repeat("x", n)))
		r.conn.Credit(s, n)
	}
	spend(500)
	r.wantFrames("WINDOW 1 +1500")
	spend(1000)
	r.wantFrames("WINDOW 1 +2000")
	spend(1500)
	r.wantFrames("WINDOW 1 +1500")
	testkit.Want(t, s.recvWindow == 3000, "window %d", s.recvWindow)

	r.feed(wire().request(3, false))
	s, r.budget.Total = r.streams[3], 0
	hold := r.conn.pool.Get(4096)
	r.feed(wire().data(3, false, strings.Repeat("x", 500)))
	r.conn.Credit(s, 500)
	r.wantFrames("WINDOW 3 +500")
	r.conn.pool.Put(hold)
}

// RFC 9113 5.1: DATA for a stream that is closed costs the connection nothing:
// its credit comes back, streams that we have reset are passed over in silence.
func TestDataOnClosedStreams(t *testing.T) {
	r := newServer(t, func(c *Config) { c.ConnWindow = 65536 })
	r.feed(wire().request(1, false).request(3, false).rst(3, Cancel))
	r.conn.Reset(r.streams[1], Cancel)
	r.frames()
	r.log = nil
	r.feed(wire().data(1, false, strings.Repeat("x", 16384)).data(3, false, strings.Repeat("x", 16384)))
	r.wantFrames("RST 3 STREAM_CLOSED", "WINDOW 0 +32768")
	r.feed(wire().data(3, true, "").headers(1, true, "late", "trailers"))
	r.wantFrames()
	r.wantLog()
}

// R14: a worker hears of a reset once, however much is under way.
func TestClientPassesOverWhatItHasReset(t *testing.T) {
	r := newClient(t)
	in := wire()
	for range 40 {
		s := r.open(true)
		id := s.ID()
		r.conn.Reset(s, Cancel)
		in.answer(id, false).data(id, false, "x").headers(id, true, "grpc-status", "1").rst(id, NoError)
	}
	r.frames()
	r.feed(in)
	r.wantFrames()
	r.wantLog()
}

// A handler that resets the stream in the middle of a DATA frame gets no more
// of it, and the frame behind it is found.
func TestResetInTheMiddleOfData(t *testing.T) {
	r := newServer(t)
	r.onData = func(s *Stream, _ []byte, _ bool) { r.conn.Reset(s, Cancel) }
	r.feed(wire().request(1, false))
	in := wire().padded(1, true, "abcdef", 9).ping(false, "12345678").b.Bytes()
	r.feed(wire().raw(in[:12]))
	r.feed(wire().raw(in[12:]))
	r.wantLog("headers 1 :path=/s/m", "data 1 ab")
	r.wantFrames("RST 1 CANCEL", `PING "12345678" ack=true`)
}

// RFC 9113 6.9.2: a caller that begins before it has seen our smaller window
// may send as much as the default one has; after its acknowledgement it may not.
func TestDefaultWindowBeforeAcknowledgement(t *testing.T) {
	r := newRig(t, true, func(c *Config) { c.Window = 1000 })
	r.feed(wire().preface().settings())
	r.frames()
	r.feed(wire().request(1, false).data(1, false, strings.Repeat("x", 10_000)))
	r.wantFrames()
	r.feed(wire().settingsAck().request(3, false).data(3, false, strings.Repeat("x", 1001)))
	r.wantFrames("RST 3 FLOW_CONTROL_ERROR")
}
