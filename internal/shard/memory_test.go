package shard

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// pair is a caller in this process, joined to the service in memory. It is the
// handler of the caller's engine.
type pair struct {
	*host
	caller, callee *Link
	reading        bool   // inside of Headers or Data of some engine
	between        func() // called in each of these, under the lock
}

// ask is one call of it.
type ask struct {
	stream h2.Stream
	left   int // bytes to send
	got    int
	status string
	ended  bool
	reset  bool
	lost   bool
}

// join makes a caller that is joined to the service.
func (h *host) join() *pair {
	p := &pair{host: h}
	h.do(func() {
		p.callee = h.NewLink(h.config(true), watched{service{h}, p}, h)
		p.caller = h.NewLink(h.config(false), watched{p, p}, h)
		h.Join(p.caller, p.callee)
	})
	return p
}

// watched is a handler that notices when it is told of bytes while another is.
type watched struct {
	h2.Handler
	pair *pair
}

func (w watched) Headers(s *h2.Stream, b *h2.Block, end bool) {
	w.pair.read(func() { w.Handler.Headers(s, b, end) })
}

func (w watched) Data(s *h2.Stream, p []byte, end bool) {
	w.pair.read(func() { w.Handler.Data(s, p, end) })
}

func (p *pair) read(f func()) {
	testkit.Want(p.t, !p.reading, "an engine was fed while another one was")
	p.reading = true
	f()
	if p.between != nil {
		p.between()
	}
	p.reading = false
}

// open begins a call that sends so many bytes. Called under the lock.
func (p *pair) open(path string, send int) *ask {
	a := &ask{left: send}
	a.stream.Owner = a
	if !p.caller.Conn.CanOpen() {
		a.lost = true
		return a
	}
	head := h2.AppendField(nil, ":method", "POST")
	head = h2.AppendField(head, ":scheme", "http")
	head = h2.AppendField(head, ":path", path)
	p.caller.Conn.Open(&a.stream, send == 0, head)
	p.Writable(&a.stream)
	return a
}

// call makes a call, waits for its end in a bubble, and returns it.
func (p *pair) call(path string, send int) *ask {
	var a *ask
	p.do(func() { a = p.open(path, send) })
	synctest.Wait()
	return a
}

func (p *pair) Accept(*h2.Conn, *h2.Block) *h2.Stream { return nil }
func (p *pair) TooLarge(*h2.Stream, bool)             {}

func (p *pair) Headers(s *h2.Stream, b *h2.Block, end bool) {
	a := s.Owner.(*ask)
	if b.Status != 0 {
		a.status = fmt.Sprint(b.Status)
	}
	a.ended = end
}

func (p *pair) Data(s *h2.Stream, b []byte, end bool) {
	a := s.Owner.(*ask)
	a.got += len(b)
	a.ended = end
	if c := s.Conn(); c != nil {
		c.Credit(s, len(b))
	}
}

func (p *pair) Writable(s *h2.Stream) {
	a, c := s.Owner.(*ask), s.Conn()
	for a.left > 0 {
		n := min(len(chunk), a.left, c.Writable(s))
		if n == 0 {
			c.Want(s)
			return
		}
		a.left -= n
		c.WriteData(s, chunk[:n], a.left == 0)
	}
}

func (p *pair) Reset(s *h2.Stream, _ h2.ErrCode, _ bool) { s.Owner.(*ask).reset = true }
func (p *pair) Lost(s *h2.Stream, _ bool)                { s.Owner.(*ask).lost = true }
func (p *pair) GoAway(*h2.Conn, uint32, h2.ErrCode)      {}
func (p *pair) Pong(*h2.Conn, [8]byte)                   {}

// wantOver checks that a call has its whole answer.
func wantOver(t *testing.T, a *ask, got int) {
	t.Helper()
	testkit.Need(t, a.status == "200" && a.ended && a.got == got && !a.stream.Open(), "the call: %+v, want 200 and %d bytes", *a, got)
}

// turnWatch looks at every turn for as long as a test wants: none carries more
// than its share.
type turnWatch struct {
	*host
	links []*Link
	each  func()
	turns int
	stop  bool
}

// Run implements Task.
func (w *turnWatch) Run(time.Duration) {
	for _, l := range w.links {
		m := l.driver.(*memory)
		testkit.Want(w.t, m.turn != w.carriage.turn || m.carried <= carriedEach, "one end sent %d bytes in one turn", m.carried)
	}
	testkit.Want(w.t, w.carriage.sent <= carriedAll, "%d bytes went through memory in one turn", w.carriage.sent)
	w.turns++
	if w.stop {
		return
	}
	w.each()
	w.Post(w)
}

// 10 MiB each way at once, and again on more pairs than a turn has room for: each
// turn carries a bounded part, and the calls of others are served in between.
func TestMemoryLargeTransfers(t *testing.T) {
	const size = 10 << 20
	for _, pairs := range []int{1, 12} {
		t.Run(fmt.Sprint(pairs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				other := h.join()
				var asks []*ask
				w := &turnWatch{host: h}
				var small []*ask
				w.each = func() {
					if n := len(small); n == 0 || small[n-1].ended {
						small = append(small, other.open("/echo", 5))
					}
					w.stop = true
					for _, a := range asks {
						w.stop = w.stop && a.ended
					}
				}
				var all []*pair
				for range pairs {
					p := h.join()
					all, w.links = append(all, p), append(w.links, p.caller, p.callee)
				}
				h.do(func() { // nothing is carried before the watch looks
					for _, p := range all {
						asks = append(asks, p.open("/sink", size), p.open(fmt.Sprint("/give/", size), 0))
					}
					h.Post(w)
				})
				synctest.Wait()
				for i, a := range asks {
					wantOver(t, a, i%2*size)
				}
				if least := 2 * pairs * size / carriedAll; w.turns < least || len(small) < w.turns/2 {
					t.Errorf("%d small calls in %d turns, of which there are %d at least", len(small), w.turns, least)
				}
			})
		})
	}
}

// Finish sends what is left, over as many turns as it takes; then both ends close.
func TestMemoryFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		p := h.join()
		p.call("/echo", 1)
		reason := errors.New("drained")
		var sink, give *ask
		h.do(func() {
			sink, give = p.open("/sink", 60<<10), p.open("/give/60000", 0)
			p.caller.Finish(reason)
		})
		synctest.Wait()
		testkit.Want(t, sink.left == 0 && sink.lost && give.lost, "calls of an end that has finished: %+v, %+v", *sink, *give)
		if got := h.awaitEnd(p.caller); !errors.Is(got, reason) {
			t.Errorf("reason: %v", got)
		}
		if got := h.awaitEnd(p.callee); !errors.Is(got, io.EOF) {
			t.Errorf("reason: %v", got)
		}

		p = h.join()
		give = p.call("/give/60000", 0)
		wantOver(t, give, 60000)
		h.do(func() {
			give = p.open("/give/60000", 0)
			h.Post(task(func(time.Duration) { // when it has been answered
				p.callee.Conn.GoAway(3, 0, "bye")
				p.callee.Finish(reason)
			}))
		})
		synctest.Wait()
		h.do(func() {
			testkit.Want(t, p.caller.Closed() && p.callee.Closed() && len(h.links) == 0,
				"caller closed: %v, callee: %v, %d links", p.caller.Closed(), p.callee.Closed(), len(h.links))
		})
	})
}

// Either end may be closed by what the bytes on their way bring about: the buffer
// that they are fed from is not given back under the reader's feet.
func TestMemoryCloseInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		p, q := h.join(), h.join()
		wantOver(t, q.call("/echo", 100), 100)
		wantOver(t, p.call("/echo", 100), 100)
		var asked []string
		h.asked = func(path string) { asked = append(asked, path) }
		var alone, behind *ask
		h.do(func() {
			alone = p.open("/alone", 0)
			behind = p.open("/echo", 1000)
		})
		synctest.Wait()
		testkit.Want(t, alone.lost && behind.lost, "told %+v, %+v", *alone, *behind)
		testkit.Want(t, errors.Is(h.awaitEnd(p.caller), errAlone) && errors.Is(h.awaitEnd(q.callee), errAlone), "reasons: %v", h.ended)
		reason := h.awaitEnd(p.callee)
		testkit.Want(t, errors.Is(reason, io.EOF), "reason: %v", reason)
		testkit.Want(t, slices.Equal(asked, []string{"/alone", "/echo"}),
			"the service was asked for %q: the second call was behind the first", asked)
	})
}

// Ends that are closed before they are joined, and those of a shard that has stopped.
func TestMemoryJoinTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		var a, b, x, y *Link
		h.do(func() {
			a, b = h.NewLink(h.config(false), service{h}, h), h.NewLink(h.config(true), service{h}, h)
			a.Close(errAlone)
			h.Join(a, b)
		})
		synctest.Wait()
		reason := h.awaitEnd(b)
		testkit.Want(t, errors.Is(reason, io.EOF), "reason: %v", reason)
		h.Stop()
		h.do(func() {
			x, y = h.NewLink(h.config(false), service{h}, h), h.NewLink(h.config(true), service{h}, h)
			h.Join(x, y)
		})
		testkit.Want(t, errors.Is(h.awaitEnd(x), errStopped) && errors.Is(h.awaitEnd(y), errStopped), "reasons: %v", h.ended)
	})
}

// Whatever happens in whatever order, also in the middle of a feed: every end is
// told once that it has ended, no engine is fed inside of another, nothing is left.
func TestMemoryAnyOrder(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			h := newHost(t)
			wild := &wildPairs{host: h, random: r}
			for range 3 {
				wild.add()
			}
			for range 60 {
				wait := false
				h.do(func() {
					wild.step(nil)
					wait = r.IntN(3) == 0
				})
				if wait {
					synctest.Wait()
				}
			}
			h.do(func() {
				for l := range h.links {
					if r.IntN(2) == 0 {
						l.Finish(io.EOF)
					} else {
						l.Close(io.EOF)
					}
				}
			})
			synctest.Wait()
			<-time.After(2 * linger) // of the bubble's clock
			synctest.Wait()
			wild.wantNothingLeft()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// wildPairs is pairs to which anything happens.
type wildPairs struct {
	*host
	random *rand.Rand
	pairs  []*pair
	asks   []*ask
}

func (w *wildPairs) add() {
	p := w.join()
	p.between = func() {
		if w.random.IntN(20) == 0 {
			w.step(p)
		}
	}
	w.pairs = append(w.pairs, p)
}

// step does something, inside of a feed of the pair within if that is not nil: an
// engine that is being fed must not be closed then.
func (w *wildPairs) step(within *pair) {
	r := w.random
	p := w.pairs[r.IntN(len(w.pairs))]
	end := p.caller
	if r.IntN(2) == 0 {
		end = p.callee
	}
	fed := within == p && end.driver.(*memory).peer.feeding
	switch n := r.IntN(40); {
	case n < 12:
		w.asks = append(w.asks, p.open("/echo", 1+r.IntN(100_000)))
	case n < 20:
		w.asks = append(w.asks, p.open("/sink", 1+r.IntN(1_000_000)))
	case n < 28:
		w.asks = append(w.asks, p.open(fmt.Sprint("/give/", r.IntN(1_000_000)), 0))
	case n < 34:
		if len(w.asks) > 0 {
			a := w.asks[r.IntN(len(w.asks))]
			if c := a.stream.Conn(); c != nil {
				c.Reset(&a.stream, h2.Cancel)
			}
		}
	case n < 36:
		end.Finish(errAlone)
	case n == 36 && !fed:
		end.Close(errAlone)
	case n == 37 && !fed:
		end.CloseFlushed(errAlone)
	case n == 38:
		end.Conn.GoAway(end.Conn.LastPeerStream(), 0, "")
	case n == 39:
		end.Conn.Ping([8]byte{})
	}
}

func (w *wildPairs) wantNothingLeft() {
	w.t.Helper()
	w.do(func() {
		testkit.Want(w.t, len(w.links) == 0, "%d links are left", len(w.links))
	})
	for _, a := range w.asks {
		testkit.Want(w.t, !a.stream.Open(), "a call is open: %+v", *a)
	}
	testkit.Equal(w.t, w.budget.Used(), 0, "bytes are in use")
}

// idlePair is how much a pair may take that has made a call and has none.
const idlePair = 4 << 10

func TestMemoryIdleSize(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const pairs = 1000
	h := newHost(t)
	all := make([]*pair, 0, pairs)
	before := liveBytes()
	for range pairs {
		p := h.join()
		var a *ask
		h.do(func() { a = p.open("/echo", 10) })
		testkit.Eventually(t, patience, "the answer", func() (over bool) {
			h.do(func() { over = a.ended })
			return over
		})
		all = append(all, p)
	}
	h.do(func() { h.pool.Trim(); h.pool.Trim() })
	each := (liveBytes() - before) / pairs
	t.Logf("an idle pair takes %d bytes", each)
	testkit.Want(t, each <= idlePair, "an idle pair takes %d bytes, want %d at most", each, idlePair)
	runtime.KeepAlive(all)
}

func liveBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
