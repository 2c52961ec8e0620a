package shard

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// open begins a call on a worker's link.
func (h *host) open(l *Link) *h2.Stream {
	s := &h2.Stream{Owner: &serving{sink: true}}
	h.do(func() { h.begin(l, s) })
	return s
}

func (h *host) begin(l *Link, s *h2.Stream) {
	l.Conn.Open(s, false, h2.AppendField(nil, ":method", "GET"), h2.AppendField(nil, ":scheme", "http"), h2.AppendField(nil, ":path", "/"))
}

// worker makes a link to a scripted worker.
func (h *host) worker(t testing.TB, tr transport) (*Link, *testkit.Peer) {
	t.Helper()
	ours, theirs := tr.pair(t)
	var l *Link
	h.do(func() {
		l = h.NewLink(h.config(false), service{h}, h)
		l.Attach(ours)
	})
	w := testkit.NewWorker(t, theirs)
	w.Greet()
	return l, w
}

// R4: a worker that says GOAWAY and is gone has said which calls it has not
// looked at; that is read also when a write finds out first that it is gone.
func TestGoAwayOfAWorkerThatIsGone(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		for range 10 {
			l, w := h.worker(h.t, tr)
			h.open(l)
			w.WantHeaders(1, testkit.NoEnd)
			w.WritePing([8]byte{1})
			w.WantPingAck([8]byte{1}) // all that the worker has written is read
			goaways := h.noted("goaway")
			h.do(func() { // no reader has its turn before the writes below
				w.WriteGoAway(0, http2.ErrCodeNo, "")
				w.Close()
				for range 3 {
					h.begin(l, &h2.Stream{Owner: &serving{sink: true}})
					h.flush(h.Now())
					if l.Closed() {
						break
					}
				}
			})
			h.awaitEnd(l)
			testkit.Need(h.t, h.noted("goaway") != goaways, "the GOAWAY was not read")
		}
	})
}

// A connection whose peer has reset it ends with that reason, once.
func TestResetByThePeer(t *testing.T) {
	testkit.CheckLeaks(t)
	h := newHost(t)
	ours, theirs := tcpPair(t)
	l := h.serve(ours)
	testkit.Must(t, theirs.(*net.TCPConn).SetLinger(0))
	theirs.Close() // with a reset
	reason := h.awaitEnd(l)
	testkit.Want(t, errors.Is(reason, syscall.ECONNRESET), "reason: %v", reason)
}

// Everything that a burst holds is read, also what is many times the read
// buffer, and also if the peer has finished behind it.
func TestBurstLargerThanTheReadBuffer(t *testing.T) {
	over(t, transports[:2], func(h *host, tr transport) {
		t := h.t
		l, p := h.caller(t, tr)
		p.Skip(testkit.WindowUpdate, testkit.Headers)
		h.do(func() { // the bytes pile up in the socket meanwhile
			h.buf = h.buf[:1000]
			p.Batch(func() {
				for id := uint32(1); id < 2*20; id += 2 {
					request(p, id, testkit.NoEnd, "/sink")
					p.WriteData(id, testkit.NoEnd, make([]byte, 2000))
				}
				for id := uint32(1); id < 2*20; id += 2 {
					p.WriteData(id, testkit.End, make([]byte, 1000))
				}
			})
			p.CloseWrite()
		})
		h.awaitEnd(l)
		testkit.Want(t, l.Conn.LastPeerStream() == 39 && h.noted("lost sent=true") == 0,
			"last stream %d, told %q", l.Conn.LastPeerStream(), h.events)
	})
}

// counted is a connection that counts what is written in one go.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// What was ready in one go leaves in one write: twenty calls that come together
// are answered together.
func TestAnswersLeaveTogether(t *testing.T) {
	const calls = 20
	testkit.CheckLeaks(t)
	h := newHost(t)
	ours, theirs := net.Pipe()
	var writes atomic.Int64
	h.serve(counted{ours, &writes})
	p := testkit.NewCaller(t, theirs)
	p.Greet()
	p.WritePing([8]byte{1})
	p.WantPingAck([8]byte{1}) // the greeting is over
	before := writes.Load()
	p.Batch(func() {
		for i := range uint32(calls) {
			request(p, 2*i+1, testkit.End, "/echo")
		}
	})
	for i := range uint32(calls) {
		p.WantHeaders(2*i+1, testkit.NoEnd)
		wantEnd(p, 2*i+1)
	}
	testkit.Equal(t, writes.Load()-before, 1, "writes for %d calls", calls)
}
