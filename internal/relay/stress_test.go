package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Everything at once: on each of several shards a cast plays a script of the pieces that the
// fuzz targets begin with, while endpoints come and go, callers in this process call, and the
// relay is reloaded, or closed in the middle. Nobody is sent what RFC 9113 does not allow, each
// call ends, where all workers are good an answer is whole or said not to be, and at the end
// nothing is left: no call, lease, stream or buffer.
func TestStress(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newStress(t, seed).run() })
		})
	}
}

type stress struct {
	*world

	seed  uint64
	good  *Endpoint
	mad   atomic.Pointer[Endpoint] // nil: all workers are good
	moves atomic.Int64             // of mad
	quit  chan struct{}
}

func newStress(t *testing.T, seed uint64) *stress {
	t.Helper()
	h := &stress{seed: seed, quit: make(chan struct{})}
	h.world = newWorld(t, func(o *Options) {
		if o.Shards = 3; seed%2 == 1 {
			o.Methods, o.RetryBudget = []stats.MethodRule{anyFailure()}, stats.RetryBudget{PerSecond: 1000}
		}
	})
	h.good = h.endpoint("good", 64, true)
	if seed%2 == 1 {
		h.mad.Store(h.endpoint("mad", 6, seed%4 == 1))
	}
	return h
}

func (h *stress) dice(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(h.seed, stream)) }

// closes tells whether the relay is closed in the middle.
func (h *stress) closes() bool { return h.seed%3 == 2 }

func (h *stress) run() {
	var playing, local, rest sync.WaitGroup
	var casts []*cast
	for i, st := range h.g.shards {
		c := newCast(h.on(st), h.mad.Load(), h.good)
		casts = append(casts, c)
		playing.Go(func() { h.play(c, h.script(uint64(i))) })
	}
	for i := range uint64(4) {
		local.Go(func() { h.callLocally(h.dice(10 + i)) })
	}
	rest.Go(func() { h.flap(h.dice(20)) })
	playing.Wait()
	close(h.quit)
	rest.Wait()
	if h.closes() {
		h.g.Close() // if it was not
		local.Wait()
		return
	}
	if e := h.mad.Load(); e != nil {
		h.g.Cut(e)
	}
	over := make(chan struct{})
	rest.Go(func() { local.Wait(); close(over) })
	for _, c := range casts {
		rest.Go(func() { h.settle(c, over) })
	}
	rest.Wait()
	h.calm()
}

// script is a random sequence of what seeds do, with a wrong byte now and then.
func (h *stress) script(of uint64) (s script) {
	dice, pieces := h.dice(of), append(callerSeeds(), peerSeeds()...)
	const most = scriptMost / 2
	for len(s) < most {
		s = append(s, pieces[dice.IntN(len(pieces))][1:]...) // without its flags
		if dice.IntN(4) == 0 {
			s[dice.IntN(len(s))] = byte(dice.IntN(256))
		}
	}
	return s[:most]
}

// play runs the script. Peers that lose their connection get another.
func (h *stress) play(c *cast, s script) {
	for moves := int64(0); len(s) > 0 && !h.g.closing.Load(); {
		if c.wild.dead {
			c.wild = c.caller()
			c.wild.greet()
		}
		if now := h.moves.Load(); c.mad != nil && (c.mad.dead || now != moves) {
			moves = now
			c.mad.leave()
			c.mad = c.worker(h.mad.Load())
			c.mad.greet()
		}
		c.step(&s)
		c.beside.keepUp()
		c.beside.flush()
	}
	c.leave()
}

// settle has everybody served until the callers in this process are over, too.
func (h *stress) settle(c *cast, over <-chan struct{}) {
	for waits := true; waits; pass(10 * time.Millisecond) {
		select {
		case <-over:
			waits = false
		default:
			c.serve()
		}
	}
	c.settle(func(call *steadyCall) bool { return h.mad.Load() == nil && call.status == "0" })
}

// flap changes the options, or opens, closes, moves, cuts off or replaces the mad endpoint,
// every few milliseconds.
func (h *stress) flap(dice *rand.Rand) {
	for n := 0; ; n++ {
		select {
		case <-h.quit:
			return
		case <-time.After(time.Duration(1+dice.IntN(10)) * time.Millisecond):
		}
		what, e := dice.IntN(8), h.mad.Load()
		switch {
		case h.closes() && n == 50:
			h.g.Close()
			return
		case what < 2 || e == nil:
			h.g.reload(func(o *Options) { changeAtRandom(o, dice) })
		case what == 2:
			h.g.Down(e)
		case what == 3:
			h.g.Cut(e)
		case what == 4:
			h.g.RemoveEndpoint(e)
			h.mad.Store(h.endpoint("mad", 6, e.local))
			h.moves.Add(1)
		default:
			h.g.Up(e, "none", "")
			h.moves.Add(1)
		}
	}
}

func changeAtRandom(o *Options, dice *rand.Rand) {
	yes := func() bool { return dice.IntN(2) == 0 }
	o.QueueLength, o.QueueTimeout = dice.IntN(200), time.Duration(1+dice.IntN(1000))*time.Millisecond
	o.CallTimeout, o.MinReady = time.Duration(dice.IntN(2))*time.Second, 1+dice.IntN(3)
	o.ReplayBytes, o.BufferTotal = dice.IntN(32<<10), int64(1+dice.IntN(8))<<20
	o.StallTimeout, o.AbsorbBytes = time.Duration(dice.IntN(3))*time.Second, dice.IntN(1<<20)
	o.MaxStreams, o.MaxHops, o.Explain = uint32(1+dice.IntN(200)), 1+dice.IntN(8), yes()
	o.Limits.Window, o.Limits.Buffer = int32(16+dice.IntN(64))<<10, (64+dice.IntN(1000))<<10
	o.Limits.Connections, o.KeepAlive = 1+dice.IntN(20), time.Duration(dice.IntN(2))*time.Second
	o.Keys.Concurrent, o.Keys.Rate, o.Keys.Burst = dice.IntN(100), float64(dice.IntN(2)*1000), 100
	o.Keys.Weights = map[string]float64{"127.0.0.1": float64(1 + dice.IntN(5))}
	o.OnCancel = []rank.OnCancel{rank.Hold, rank.Free}[dice.IntN(2)]
	o.Rank.StreamSlots = dice.IntN(4)
	if yes() {
		o.Keys.By, o.Keys.Metadata = []callers.KeySource{callers.ByNothing, callers.ByAuthority, callers.ByMetadata}[dice.IntN(3)], "user-agent"
	}
	if yes() {
		o.Methods, o.RetryBudget = []stats.MethodRule{anyFailure()}, stats.RetryBudget{PerSecond: float64(dice.IntN(1000))}
	}
	if yes() {
		o.Rank.Order, o.Rank.Admit = rank.FIFO, rank.BoundedLength
	}
}

// callLocally makes calls as doors of this process do, in any order.
func (h *stress) callLocally(dice *rand.Rand) {
	l := h.g.ServeLocal(callers.Caller{Address: "192.0.2.1", Identity: fmt.Sprint(dice.IntN(4))})
	defer func() { l.Close() }()
	for range 20 {
		if dice.IntN(15) == 0 {
			l.Close()
			l = h.g.ServeLocal(callers.Caller{})
		}
		var calls sync.WaitGroup
		for range 1 + dice.IntN(4) {
			send, piece, fate := pattern(1+dice.IntN(4000)), 100+dice.IntN(4000), dice.IntN(8)
			calls.Go(func() { h.callLocal(l, send, piece, fate) })
		}
		if dice.IntN(20) == 0 {
			l.Close()
		}
		calls.Wait()
	}
}

// callLocal makes one call that comes to its end, or does not.
func (h *stress) callLocal(l *Local, send []byte, piece, fate int) {
	var c LocalCall
	ask := LocalRequest{Head: headOf(request(hello)...), Body: send[:1], End: fate == 2}
	switch {
	case fate > 2:
		got, err := echoCall(&c, l, send, piece)
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrTooManyCalls) {
			return
		}
		if code, _ := c.Status(); err == nil && code == grpcwire.OK && h.mad.Load() == nil && !bytes.Equal(got, send) {
			h.t.Errorf("%d bytes came back of %d", len(got), len(send))
		}
	case l.Open(&c, ask) != nil:
		return
	case fate == 1: // is cancelled somewhere on its way
		cancelled := make(chan struct{})
		go func() { // ends at once
			defer close(cancelled)
			c.Cancel()
		}()
		_, _ = c.Write(send)
		_, _ = io.ReadAll(&c)
		<-cancelled
	case fate == 2: // is read in part
		_, _ = c.Read(make([]byte, 1))
	}
	c.Close()
}

// calm checks that nothing is left of the calls, and that all were counted.
func (h *stress) calm() {
	h.t.Helper()
	h.g.wantInFlight(0)
	h.g.wantWaiting(0)
	h.g.each(wantFreeListSane(h.t))
	s, finished := h.g.Stats(), uint64(0)
	hedges := s.Hedges
	testkit.Want(h.t, hedges["sent"] == hedges["won"]+hedges["lost"], "hedges: %v", hedges)
	for _, m := range s.Methods {
		for _, n := range m.Codes {
			finished += n
		}
	}
	testkit.Want(h.t, finished != 0, "no call was counted")
}

// wantFreeListSane says that no call is twice among those for reuse, and that
// each of them is as good as new.
func wantFreeListSane(t testing.TB) func(*shardState) {
	t.Helper()
	return func(st *shardState) {
		seen := map[*call]bool{}
		for c := st.free; c != nil; c = c.nextFree {
			testkit.Need(t, !seen[c], "a call is twice in the free list")
			seen[c] = true
			a := c.main
			if c.state != callNew || c.ended || c.awaited || c.node.Listed() || c.down.Open() || c.clock.Set() || c.hedge != nil ||
				c.req != nil || c.resp != nil || c.caller != nil || a.call != c || a.lease.Valid() || a.up.Open() || a.hold.Set() || a.via != nil {
				t.Errorf("a call for reuse has a past: %+v", c)
			}
		}
		testkit.Want(t, len(seen) == st.freeCount && st.freeCount <= maxFree,
			"%d calls for reuse, counted %d, at most %d", len(seen), st.freeCount, maxFree)
	}
}
