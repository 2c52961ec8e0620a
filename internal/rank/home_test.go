package rank

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// hashing returns a rank of ready endpoints for which calls wait by their hashes.
func hashing(slots ...int) (*Rank, []*Endpoint) {
	r := New(Options{QueueLength: 10_000, ByHash: true})
	endpoints := make([]*Endpoint, len(slots))
	for i, n := range slots {
		endpoints[i] = r.Add(fmt.Sprint("worker-", i+1), EndpointOptions{Slots: n, OnCancel: Free})
		r.SetReady(endpoints[i], true, 0, nil)
	}
	return r, endpoints
}

// Calls move to an endpoint with a free slot when theirs is removed, and somebody
// is asked to hand it out.
func TestCallsOfARemovedEndpointAreServed(t *testing.T) {
	r, e := hashing(1, 1)
	running, waiting := newCaller(0), newCaller(0)
	running.acquire(t, r, 0, Granted)
	r.SetSuspect(e[1-running.lease.Endpoint().Index()], true, 0, nil)
	waiting.acquire(t, r, 0, Queued)
	other := e[1-running.lease.Endpoint().Index()]
	r.SetSuspect(other, false, 0, nil)
	woken(r)
	r.Remove(running.lease.Endpoint(), ms)
	testkit.Want(t, woken(r), "nobody is asked for a Tick")
	n, _ := tick(r, ms)
	testkit.Want(t, n == 1 && waiting.lease.Endpoint() == other, "%d notices while a call waits beside a free slot", n)
}

// The same key meets the same worker, keys are spread over all, only those of a worker that
// goes move, and a key that is too popular overflows to the next.
func TestHashesMeetTheirEndpoints(t *testing.T) {
	r, endpoints := hashing(1000, 1000, 1000, 1000)
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
		testkit.Need(t, at(hash) == before[hash], "a key met two workers")
	}
	r.SetReady(endpoints[1], false, 0, nil)
	moved := 0
	for hash, e := range before {
		if now := at(hash); now != e {
			moved++
			testkit.Need(t, e == endpoints[1], "a key moved although its worker is there")
		}
	}
	testkit.Want(t, moved >= 440 && moved <= 560, "%d of 2000 keys moved when one of four workers went", moved)
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
func TestHashesKeepTheirEndpoints(t *testing.T) {
	r, _ := hashing(3, 3, 3, 3)
	of := func(hash uint64) *caller {
		c := newCaller(0)
		c.Request.Hash = hash
		c.acquire(t, r, 0, Granted)
		return c
	}
	home := map[uint64]*Endpoint{}
	for key := range uint64(100) {
		c := of(mix(key + 1))
		home[mix(key+1)] = c.lease.Endpoint()
		c.release(r, OK, 0)
	}
	random := rand.New(rand.NewPCG(4, 4))
	var running []*caller // four at a time
	for range 1000 {
		if len(running) == 4 {
			running[0].release(r, OK, 0)
			running = running[1:]
		}
		hash := mix(1 + random.Uint64N(100))
		own := home[hash]
		room := own.open()
		c := of(hash)
		testkit.Need(t, !room || c.lease.Endpoint() == own, "a call went elsewhere while its key's worker had a free slot")
		running = append(running, c)
	}
}

// Calls without the header go to all endpoints.
func TestCallsWithoutAHashAreSpread(t *testing.T) {
	r, endpoints := hashing(9, 9, 9, 9)
	for range 12 {
		newCaller(0).acquire(t, r, 0, Granted)
	}
	for _, e := range endpoints {
		n := e.busy()
		testkit.Want(t, n != 0 && n != 9, "%d of 12 calls run on one of 4 endpoints", n)
	}
}

// Calls that are bound to an endpoint that goes move to another one, and those
// that came while nothing was up are bound when something is.
func TestBoundCallsMove(t *testing.T) {
	r, e := hashing(1, 1)
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
	own := calls[0].lease.Endpoint()
	r.SetReady(e[1-own.Index()], false, 0, nil)
	r.SetReady(own, false, 0, nil)
	late := newCaller(0)
	late.acquire(t, r, 0, Queued)
	calls = append(calls, late)
	deliver(r.SetReady(own, true, ms, nil)) // its call still runs
	running := calls[0]
	for n := range 3 {
		running = running.next(r, ms, calls[2:])
		if r.Waiting() != 2-n {
			t.Fatalf("%d wait after %d calls", r.Waiting(), n+1)
		}
	}
}
