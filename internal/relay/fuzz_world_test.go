package relay

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// world is a relay without transports, as one of its shards sees it: every byte goes in and
// out by hand, in the order that a script says.
type world struct {
	t     testing.TB
	g     *rig
	st    *shardState
	split int           // bytes per Feed
	fed   *atomic.Int64 // bytes that all callers and workers have sent
}

// memoryBound is how much the relay may hold, besides what it was sent several
// times over: the two connections' output, and for each call one window.
const memoryBound = 2 << 20

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	g := newPipeRig(t, append([]func(*Options){func(o *Options) {
		o.MaxStreams, o.HeaderList, o.QueueLength, o.QueueTimeout = 20, 2000, 50, 24*time.Hour
		o.BufferTotal, o.ReplayBytes, o.ReplayTotal = 4<<20, 4<<10, 64<<10
		o.Keys, o.BalanceKey, o.Explain = callers.Keys{By: callers.ByMetadata, Metadata: "x-tenant"}, "cookie", true
		o.Lanes = []Lane{{LaneOptions: rank.LaneOptions{Name: "first", Priority: 1, Reserve: 1}, Keys: []string{"t"}}}
	}}, change...)...)
	return worldOf(g)
}

func worldOf(g *rig) *world {
	return &world{t: g.t, g: g, st: g.shards[0], split: 1 << 20, fed: new(atomic.Int64)}
}

// on is the same relay on another shard.
func (w *world) on(st *shardState) *world {
	other := *w
	other.st = st
	return &other
}

// caller connects a caller.
func (w *world) caller() *peer {
	f := newPeer(w, false)
	w.st.do(func() {
		if f.dead = w.g.closing.Load(); f.dead {
			return
		}
		cc := &callerConn{st: w.st, callerID: w.st.ids.New(callers.Caller{Address: "192.0.2.1"})}
		cc.source = w.g.sources.Enter("192.0.2.1", 1<<30, false, 0)
		cc.timer.Owner = cc
		cc.link = w.st.NewLink(&w.st.conf.down, callerSide{w.st}, cc)
		cc.link.Conn.Owner = cc
		w.st.callers[cc] = struct{}{}
		f.cc, f.link = cc, cc.link
	})
	return f
}

// endpoint brings in an endpoint to which no connections can be made but by worker.
func (w *world) endpoint(name string, slots int, local bool) *Endpoint {
	e := w.g.AddEndpoint(name, slots, local)
	w.g.Up(e, "none", "")
	return e
}

// worker connects a worker to this shard.
func (w *world) worker(e *Endpoint) *peer {
	f := newPeer(w, true)
	f.e = e
	w.st.do(func() {
		if f.dead = w.g.closing.Load(); f.dead {
			return
		}
		f.uc = w.st.upstreamOf(e.slots).newConn()
		f.link = f.uc.link
	})
	return f
}

// hand hands in what the far end has written, in pieces, as a link does.
func (f *peer) hand(p []byte) {
	f.w.t.Helper()
	f.w.fed.Add(int64(len(p)))
	for len(p) > 0 {
		n := min(f.w.split, len(p))
		f.w.st.do(func() { f.feed(p[:n]) })
		p = p[n:]
	}
	f.w.check()
}

func (f *peer) feed(p []byte) {
	if f.dead = f.dead || f.link.Closed(); f.dead {
		return
	}
	err := f.link.Conn.Feed(bytes.Clone(p), f.w.st.Now()) // the engine may write over it
	if err == nil {
		f.fed(p, f.taken+int64(len(f.link.Conn.Output())))
		return
	}
	f.fed(p, never) // some of it
	f.dead, f.deaf = true, true
	why, _ := errors.AsType[*h2.ConnError](err)
	switch {
	case errors.Is(err, h2.ErrNotHTTP2):
		f.link.Close(err)
	case f.uc != nil:
		f.uc.Broken(f.link, why)
	default:
		f.cc.Broken(f.link, why)
	}
	f.link.Finish(err)
}

// take has the transport accept at most n bytes.
func (f *peer) take(n int) {
	f.w.t.Helper()
	f.w.st.do(func() {
		if f.dead = f.dead || f.link.Closed(); f.dead {
			return
		}
		p := f.link.Conn.Output()
		n = min(n, len(p))
		p = bytes.Clone(p[:n])
		f.link.Conn.Sent(n)
		f.took(p)
	})
}

// drain takes all that there is, and reports whether that was anything.
func (f *peer) drain() bool {
	f.w.t.Helper()
	before := f.taken
	for last := int64(-1); last != f.taken; {
		last = f.taken
		f.take(1 << 20)
	}
	return f.taken != before
}

// leave ends the connection from the far end.
func (f *peer) leave() {
	f.w.st.do(func() {
		if f.dead = true; f.link != nil {
			f.link.Close(io.EOF)
		}
	})
	f.w.check()
}

// check says what must be true between any two events.
func (w *world) check() {
	w.t.Helper()
	used, fed := w.g.budget.Used(), w.fed.Load()
	testkit.Need(w.t, used <= int64(len(w.g.shards))*memoryBound+4*fed, "%d bytes are in use after %d were sent", used, fed)
}

// goodWorker is a worker that keeps all rules: it reads everything, answers
// every whole request with its own bytes, and returns credit.
type goodWorker struct {
	*peer
	whole   []*judged       // requests that wait for their answer
	replied map[string]bool // bodies that were answered
}

func newGoodWorker(w *world, e *Endpoint, settings ...http2.Setting) *goodWorker {
	g := &goodWorker{peer: w.worker(e), replied: map[string]bool{}}
	g.onHeaders = func(s *judged, fields []hpack.HeaderField, end bool) {
		for _, f := range fields {
			if f.Name == ":path" {
				s.path = f.Value
			}
		}
		g.got(s, end)
	}
	g.onData = func(s *judged, p []byte, end bool) {
		s.body = append(s.body, p...)
		if len(p) > 0 {
			_ = g.framer.WriteWindowUpdate(0, uint32(len(p)))
		}
		g.got(s, end)
	}
	g.greet(settings...)
	return g
}

func (g *goodWorker) got(s *judged, end bool) {
	if end {
		g.whole = append(g.whole, s)
	}
}

// work reads what there is and gives streams that wait some room.
func (g *goodWorker) work(room uint32) bool {
	g.w.t.Helper()
	moved := g.drain()
	testkit.Need(g.w.t, !g.dead || g.w.g.closing.Load(), "a worker that kept all rules has lost its connection")
	g.keepUp()
	for _, s := range g.streams {
		if room > 0 && !s.ended && !s.reset && s.window < 1<<20 {
			_ = g.framer.WriteWindowUpdate(s.id, room)
		}
	}
	g.flush()
	return moved
}

// answer replies to the request that has waited longest, as far as the windows
// allow, and reports whether there was one.
func (g *goodWorker) answer() bool {
	g.w.t.Helper()
	if len(g.whole) == 0 {
		return false
	}
	s := g.whole[0]
	g.whole = g.whole[1:]
	if s.reset || s.answered {
		return true
	}
	s.answered = true
	g.replied[string(s.body)] = true
	body := s.body[:max(min(int64(len(s.body)), s.credit, g.credit, 16384), 0)]
	g.headers(s.id, false, responseHead()...)
	_ = g.framer.WriteData(s.id, false, body)
	g.headers(s.id, true, "grpc-status", "0")
	g.flush()
	return true
}

// steady is a caller that keeps all rules.
type steady struct {
	*peer
	calls map[uint32]*steadyCall
}

// steadyCall is one call and what came back.
type steadyCall struct {
	ask    string
	got    []byte
	status string
	ended  bool
	reset  bool
}

func newSteady(w *world) *steady {
	b := &steady{peer: w.caller(), calls: map[uint32]*steadyCall{}}
	b.onHeaders = func(s *judged, fields []hpack.HeaderField, end bool) {
		c := b.calls[s.id]
		for _, f := range fields {
			if f.Name == "grpc-status" {
				c.status = f.Value
			}
		}
		c.ended = end
	}
	b.onData = func(s *judged, p []byte, end bool) {
		c := b.calls[s.id]
		c.got, c.ended = append(c.got, p...), end
	}
	b.onReset = func(s *judged) { b.calls[s.id].reset = true }
	b.greet()
	_ = b.framer.WriteWindowUpdate(0, 1<<20)
	b.flush()
	return b
}

// steadyMost is how many calls a steady caller has open at a time.
const steadyMost = 8

// call makes a call, unless there are enough.
func (b *steady) call() {
	b.w.t.Helper()
	if b.waiting() >= steadyMost || b.dead {
		return
	}
	id := b.next
	b.next += 2
	ask := string(hi()) + " steady " + time.Duration(id).String()
	b.calls[id] = &steadyCall{ask: ask}
	b.headers(id, false, request(hello, "x-steady", ask[5:])...)
	_ = b.framer.WriteData(id, true, []byte(ask))
	b.flush()
}

// waiting counts calls that have no end yet.
func (b *steady) waiting() (n int) {
	for _, c := range b.calls {
		if !c.ended && !c.reset {
			n++
		}
	}
	return n
}
