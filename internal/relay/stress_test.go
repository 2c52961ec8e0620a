package relay

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Everything at once: several shards, endpoints that come and go, workers that
// refuse, reset, break rules and die, callers that lose interest. Nobody is sent what
// RFC 9113 does not allow, each call ends, and at the end nothing is left: no call,
// lease, stream or buffer.
func TestStress(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newWildHouse(t, seed)
			const calls = 400
			h.rush(calls).Wait()
			h.wantCalm()
			hedges := h.Stats().Hedges
			if hedges["sent"] != hedges["won"]+hedges["lost"] || seed == spareSeed && (hedges["won"] == 0 || hedges["lost"] == 0) {
				t.Errorf("hedges: %v", hedges)
			}
			finished := uint64(0)
			for _, m := range h.Stats().Methods {
				for _, n := range m.Codes {
					finished += n
				}
			}
			if finished == 0 || finished > wildCallers*(calls+1) {
				t.Errorf("%d calls were counted, at most %d were made", finished, wildCallers*(calls+1))
			}
		})
	}
}

// Close in the middle of all that ends everything, and leaves nothing either.
func TestCloseUnderLoad(t *testing.T) {
	for seed := range uint64(3) {
		h := newWildHouse(t, seed)
		callers := h.rush(400)
		testkit.Eventually(t, soon, "some calls", func() bool { return len(h.Stats().Methods) > 1 })
		h.Close()
		callers.Wait()
		h.stop()
		h.wantNothingLeft()
	}
}

const (
	// spareSeed is the seed with which there are slots to spare for hedges.
	spareSeed   = 2
	wildCallers = 6
)

// wildHouse is a relay in front of three wild workers.
type wildHouse struct {
	*rig
	seed      uint64
	endpoints []*Endpoint
	addresses []string
	quit      chan struct{}
	helpers   sync.WaitGroup
}

func newWildHouse(t *testing.T, seed uint64) *wildHouse {
	t.Helper()
	h := &wildHouse{seed: seed, quit: make(chan struct{})}
	h.rig = newRig(t, func(o *Options) {
		o.Shards, o.QueueLength, o.BufferTotal = 2+int(seed%3), 40+100*int(seed%3), 4<<20
		o.ReplayBytes, o.ReplayTotal = 16<<10, 256<<10
		if seed > 0 {
			o.Methods, o.RetryBudget = []MethodRule{anyFailure()}, RetryBudget{PerSecond: 1000}
		}
	})
	for i := range uint64(3) {
		worker := newWildWorker(t, seed<<8+i)
		h.addresses = append(h.addresses, worker.ln.Addr().String())
		e := h.AddEndpoint(fmt.Sprint("w", i), h.slots(), i > 0)
		h.Up(e, "tcp", h.addresses[i])
		h.endpoints = append(h.endpoints, e)
	}
	h.helpers.Go(func() { h.nowAndThen(99, h.flap) })
	return h
}

func (h *wildHouse) slots() int {
	if h.seed == spareSeed {
		return 100
	}
	return 4
}

// rush has wild callers make so many calls each. They are waited for with what it
// returns.
func (h *wildHouse) rush(calls int) *sync.WaitGroup {
	var callers sync.WaitGroup
	for i := range uint64(wildCallers) {
		w := &wildCaller{t: h.t, addr: h.addr, dice: rand.New(rand.NewPCG(h.seed, i))}
		callers.Go(func() { w.run(calls) })
	}
	return &callers
}

func (h *wildHouse) stop() {
	close(h.quit)
	h.helpers.Wait()
}

// wantCalm ends all that is done beside the callers, and checks that nothing is left
// of their calls.
func (h *wildHouse) wantCalm() {
	h.t.Helper()
	h.stop()
	testkit.Eventually(h.t, soon, "all calls to be over", func() bool { return h.running() == 0 })
	h.wantInFlight(0)
	h.wantWaiting(0)
	h.Drain(time.Second, nil)
	h.each(wantFreeListSane(h.t))
}

// nowAndThen does something every few milliseconds until stop.
func (h *wildHouse) nowAndThen(stream uint64, do func(dice *rand.Rand)) {
	dice := rand.New(rand.NewPCG(h.seed, stream))
	for {
		select {
		case <-h.quit:
			return
		case <-time.After(time.Duration(1+dice.IntN(10)) * time.Millisecond):
			do(dice)
		}
	}
}

// flap opens, closes, moves, cuts off or replaces an endpoint.
func (h *wildHouse) flap(dice *rand.Rand) {
	i := dice.IntN(len(h.endpoints))
	e := h.endpoints[i]
	switch dice.IntN(8) {
	case 0:
		h.Down(e)
	case 1:
		h.Up(e, "tcp", "127.0.0.1:1") // nobody is there
	case 2:
		h.Cut(e)
	case 3:
		h.RemoveEndpoint(e)
		h.endpoints[i] = h.AddEndpoint(e.name, h.slots(), e.local)
		h.Up(h.endpoints[i], "tcp", h.addresses[i])
	default:
		h.Up(e, "tcp", h.addresses[dice.IntN(len(h.addresses))])
	}
}

// wantFreeListSane says that no call is twice among those for reuse, and that
// each of them is as good as new.
func wantFreeListSane(t testing.TB) func(*stand) {
	t.Helper()
	return func(st *stand) {
		seen := map[*call]bool{}
		for c := st.free; c != nil; c = c.nextFree {
			if seen[c] {
				t.Fatal("a call is twice in the free list")
			}
			seen[c] = true
			if c.state != callNew || c.done || c.awaited || c.place.listed() || c.lease.Valid() || c.down.Open() || c.up.Open() ||
				c.clock.Set() || c.hold.Set() || c.hedge != nil || c.req != nil || c.resp != nil || c.caller != nil || c.via != nil {
				t.Errorf("a call for reuse has a past: %+v", c)
			}
		}
		if len(seen) != st.freeCount || st.freeCount > maxFree {
			t.Errorf("%d calls for reuse, counted %d, at most %d", len(seen), st.freeCount, maxFree)
		}
	}
}
