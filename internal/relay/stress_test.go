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
// refuse, reset, break rules and die, callers that lose interest. Each call
// ends, and at the end nothing is left: no call, lease, stream or buffer.
func TestStress(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { stress(t, seed) })
	}
}

// Close in the middle of all that ends everything, and leaves nothing either.
func TestCloseUnderLoad(t *testing.T) {
	for seed := range uint64(3) {
		g, endpoints, addresses := wildHouse(t, seed)
		quit := make(chan struct{})
		var others sync.WaitGroup
		others.Go(func() { g.flap(seed, endpoints, addresses, quit) })
		for i := range uint64(6) {
			w := &wildCaller{addr: g.addr, dice: rand.New(rand.NewPCG(seed, i))}
			others.Go(func() { w.run(400) })
		}
		testkit.Eventually(t, soon, "some calls", func() bool { return len(g.Stats().Methods) > 1 })
		g.Close()
		close(quit)
		others.Wait()
		g.wantNothingLeft()
	}
}

// spareSeed is the seed with which there are slots to spare for hedges.
const spareSeed = 2

// wildHouse starts a relay in front of three wild workers.
func wildHouse(t *testing.T, seed uint64) (g *rig, endpoints []*Endpoint, addresses []string) {
	t.Helper()
	g = newRig(t, func(o *Options) {
		o.Shards, o.QueueLength, o.BufferTotal = 2+int(seed%3), 40+100*int(seed%3), 4<<20
		o.ReplayBytes, o.ReplayTotal = 16<<10, 256<<10
		if seed > 0 {
			o.Methods, o.RetryBudget = []MethodRule{anyFailure()}, RetryBudget{PerSecond: 1000}
		}
	})
	for i := range uint64(3) {
		worker := newWildWorker(t, seed<<8+i)
		addresses = append(addresses, worker.ln.Addr().String())
		e := g.AddEndpoint(fmt.Sprint("w", i), wildSlots(seed), i > 0)
		g.Up(e, "tcp", addresses[i])
		endpoints = append(endpoints, e)
	}
	return g, endpoints, addresses
}

func wildSlots(seed uint64) int {
	if seed == spareSeed {
		return 100
	}
	return 4
}

func stress(t *testing.T, seed uint64) {
	t.Helper()
	g, endpoints, addresses := wildHouse(t, seed)
	quit := make(chan struct{})
	var flapper, callers sync.WaitGroup
	flapper.Go(func() { g.flap(seed, endpoints, addresses, quit) })
	const each, calls = 6, 400
	for i := range uint64(each) {
		w := &wildCaller{addr: g.addr, dice: rand.New(rand.NewPCG(seed, i))}
		callers.Go(func() { w.run(calls) })
	}
	callers.Wait()
	close(quit)
	flapper.Wait()
	testkit.Eventually(t, soon, "all calls to be over", func() bool { return g.running() == 0 })
	g.wantInFlight(0)
	g.wantWaiting(0)
	hedges := g.Stats().Hedges
	if hedges["sent"] != hedges["won"]+hedges["lost"] || seed == spareSeed && (hedges["won"] == 0 || hedges["lost"] == 0) {
		t.Errorf("hedges: %v", hedges)
	}
	finished := uint64(0)
	for _, m := range g.Stats().Methods {
		for _, n := range m.Codes {
			finished += n
		}
	}
	if finished == 0 || finished > each*calls {
		t.Errorf("%d calls were counted, at most %d were made", finished, each*calls)
	}
	g.Drain(time.Second, nil)
	g.each(wantFreeListSane(t))
}

// flap opens, closes, moves, cuts off and replaces endpoints.
func (g *rig) flap(seed uint64, endpoints []*Endpoint, addresses []string, quit <-chan struct{}) {
	dice := rand.New(rand.NewPCG(seed, 99))
	for {
		select {
		case <-quit:
			return
		case <-time.After(time.Duration(1+dice.IntN(10)) * time.Millisecond):
		}
		i := dice.IntN(len(endpoints))
		e := endpoints[i]
		switch dice.IntN(8) {
		case 0:
			g.Down(e)
		case 1:
			g.Up(e, "tcp", "127.0.0.1:1") // nobody is there
		case 2:
			g.Cut(e)
		case 3:
			g.RemoveEndpoint(e)
			endpoints[i] = g.AddEndpoint(e.name, wildSlots(seed), e.local)
			g.Up(endpoints[i], "tcp", addresses[i])
		default:
			g.Up(e, "tcp", addresses[dice.IntN(len(addresses))])
		}
	}
}

// wantFreeListSane says that no call is twice among those for reuse, and that
// each of them is as good as new.
func wantFreeListSane(t *testing.T) func(*stand) {
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
