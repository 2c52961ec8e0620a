package rank

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// balanced returns a rank of ready endpoints under a policy.
func balanced(b Balance, slots ...int) (*Rank, []*Endpoint) {
	random := rand.New(rand.NewPCG(7, uint64(b)))
	r := New(Options{QueueLength: 10_000, Balance: b, Random: random.Float64})
	endpoints := make([]*Endpoint, len(slots))
	for i, n := range slots {
		endpoints[i] = r.Add(fmt.Sprint("worker-", i+1), EndpointOptions{Slots: n, OnCancel: Free})
		r.SetReady(endpoints[i], true, 0, nil)
	}
	return r, endpoints
}

// R21: a policy that binds early has calls wait for their own endpoint while
// others are idle; late binding does not.
func TestBindingEarlyWaits(t *testing.T) {
	for b := range balances {
		t.Run(b.String(), func(t *testing.T) {
			r, _ := balanced(b, 1, 1, 1, 1)
			waited := false
			for range 4 {
				c := newCaller(0)
				c.Request.Hash = 42
				_, reply, _ := r.Acquire(&c.Ticket, c, 0)
				waited = waited || reply == Queued
			}
			if want := b == Random || b == P2C; waited != want && b != PeakEWMA && b != RingHash {
				t.Errorf("somebody waited: %v", waited)
			}
		})
	}
}

// Calls move to an endpoint with a free slot when theirs is removed, and somebody
// is asked to hand it out.
func TestCallsOfARemovedEndpointAreServed(t *testing.T) {
	r, e := balanced(RingHash, 1, 1)
	running, waiting := newCaller(0), newCaller(0)
	running.acquire(t, r, 0, Granted)
	r.SetSuspect(e[1-running.lease.Endpoint().Index()], true, 0, nil)
	waiting.acquire(t, r, 0, Queued)
	other := e[1-running.lease.Endpoint().Index()]
	r.SetSuspect(other, false, 0, nil)
	woken(r)
	r.Remove(running.lease.Endpoint(), ms)
	if !woken(r) {
		t.Error("nobody is asked for a Tick")
	}
	if n, _ := tick(r, ms); n != 1 || waiting.lease.Endpoint() != other {
		t.Errorf("%d notices while a call waits beside a free slot", n)
	}
}

// A worker that starts anew has no latency of its predecessor.
func TestANewWorkerHasNoLatency(t *testing.T) {
	r, e := balanced(PeakEWMA, 1)
	c := newCaller(0)
	c.acquire(t, r, 0, Granted)
	c.release(r, OK, time.Minute)
	r.SetReady(e[0], false, time.Minute, nil)
	r.SetReady(e[0], true, time.Minute, nil)
	if cost := e[0].latency.cost(1, time.Minute); cost != 0 {
		t.Errorf("it costs %v", time.Duration(cost))
	}
}

// Names of policies are those of configuration files.
func TestBalanceNames(t *testing.T) {
	for b := range balances {
		if got, ok := ParseBalance(b.String()); !ok || got != b {
			t.Errorf("%v is parsed as %v", b, got)
		}
	}
	if _, ok := ParseBalance("best"); ok {
		t.Error("there is a policy named best")
	}
	if got := Balance(99).String(); got != "balance_99" {
		t.Error(got)
	}
}

// Each policy spreads calls as it says.
func TestSpread(t *testing.T) {
	const calls = 20_000
	for b, want := range map[Balance]struct{ least, most float64 }{
		Random:       {0.22, 0.28},
		RoundRobin:   {0.2499, 0.2501},
		LeastRequest: {0.249, 0.251},
		P2C:          {0.23, 0.27},
		PeakEWMA:     {0.22, 0.28},
		RingHash:     {0.15, 0.35},
	} {
		r, endpoints := balanced(b, 100, 100, 100, 100)
		random := rand.New(rand.NewPCG(1, 1))
		served := map[*Endpoint]int{}
		for i := range calls {
			now := time.Duration(i) * ms
			c := newCaller(now)
			c.Request.Hash = random.Uint64()
			c.acquire(t, r, now, Granted)
			served[c.lease.Endpoint()]++
			c.release(r, OK, now+ms/2)
		}
		for _, e := range endpoints {
			if share := float64(served[e]) / calls; share < want.least || share > want.most {
				t.Errorf("%v: %s got %.3f of the calls", b, e.Name(), share)
			}
		}
	}
}

// The same key meets the same worker, few keys move when one goes, and a key
// that is too popular overflows to the next.
func TestRingHash(t *testing.T) {
	r, endpoints := balanced(RingHash, 1000, 1000, 1000, 1000)
	at := func(hash uint64) *Endpoint {
		c := newCaller(0)
		c.Request.Hash = hash
		c.acquire(t, r, 0, Granted)
		defer c.release(r, OK, 0)
		return c.lease.Endpoint()
	}
	random := rand.New(rand.NewPCG(3, 3))
	before := map[uint64]*Endpoint{}
	for range 2000 {
		hash := random.Uint64()
		before[hash] = at(hash)
		if at(hash) != before[hash] {
			t.Fatal("a key met two workers")
		}
	}
	r.SetReady(endpoints[1], false, 0, nil)
	moved := 0
	for hash, e := range before {
		if now := at(hash); now != e {
			moved++
			if e != endpoints[1] {
				t.Fatal("a key moved although its worker is there")
			}
		}
	}
	if moved < 200 || moved > 900 {
		t.Errorf("%d of 2000 keys moved when one of four workers went", moved)
	}
	for range 3200 { // all of one key
		c := newCaller(0)
		c.Request.Hash = 1
		r.Acquire(&c.Ticket, c, 0)
	}
	for _, e := range r.up {
		if e.calls() < 1000 || e.calls() > 1334 {
			t.Errorf("%s has %d of 3,200 calls of one key", e.Name(), e.calls())
		}
	}
}

// A call meets its key's worker as long as that has a free slot, however few calls
// there are.
func TestRingHashKeepsItsKeys(t *testing.T) {
	r, _ := balanced(RingHash, 3, 3, 3, 3)
	of := func(hash uint64) *caller {
		c := newCaller(0)
		c.Request.Hash = hash
		c.acquire(t, r, 0, Granted)
		return c
	}
	home := map[uint64]*Endpoint{}
	for key := range uint64(100) {
		c := of(mix(key))
		home[mix(key)] = c.lease.Endpoint()
		c.release(r, OK, 0)
	}
	random := rand.New(rand.NewPCG(4, 4))
	var running []*caller // four at a time
	for range 1000 {
		if len(running) == 4 {
			running[0].release(r, OK, 0)
			running = running[1:]
		}
		hash := mix(random.Uint64N(100))
		own := home[hash]
		room := own.open()
		c := of(hash)
		if room && c.lease.Endpoint() != own {
			t.Fatal("a call went elsewhere while its key's worker had a free slot")
		}
		running = append(running, c)
	}
}

// Calls that are bound to an endpoint that goes move to another one, and those
// that came while nothing was up are bound when something is.
func TestBoundCallsMove(t *testing.T) {
	r, e := balanced(RoundRobin, 1, 1)
	var calls []*caller
	for range 4 {
		c := newCaller(0)
		lease, _, _ := r.Acquire(&c.Ticket, c, 0)
		c.lease = lease
		calls = append(calls, c)
	}
	if r.Waiting() != 2 {
		t.Fatalf("%d wait", r.Waiting())
	}
	r.SetReady(e[1], false, 0, nil)
	r.SetReady(e[0], false, 0, nil)
	late := newCaller(0)
	late.acquire(t, r, 0, Queued)
	calls = append(calls, late)
	deliver(r.SetReady(e[0], true, ms, nil)) // its call still runs
	running := calls[0]
	for n := range 3 {
		running = running.next(r, ms, calls[2:])
		if r.Waiting() != 2-n {
			t.Fatalf("%d wait after %d calls", r.Waiting(), n+1)
		}
	}
}
