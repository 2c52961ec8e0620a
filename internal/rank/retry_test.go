package rank

import (
	"testing"
	"time"
)

// A hedge gets a slot that nobody else wants, on another endpoint than the call
// that it stands beside.
func TestAcquireFree(t *testing.T) {
	r, endpoints := newRank(t, 9, 2, 1)
	r.SetReady(endpoints[1], false, 0, nil)
	call := newCaller(0)
	call.acquire(t, r, 0, Granted)
	var hedge Ticket
	ask := func(deadline time.Duration, want bool) Lease {
		t.Helper()
		hedge.Request = Request{Avoid: endpoints[0], Deadline: deadline}
		lease, ok := r.AcquireFree(&hedge, 1*ms)
		if ok != want || lease.Valid() != want {
			t.Fatalf("AcquireFree: %v with lease %v, want %v", ok, lease.Valid(), want)
		}
		return lease
	}
	ask(0, false) // the other slot is where the call runs
	r.SetReady(endpoints[1], true, 0, nil)
	ask(1*ms, false) // too late
	lease := ask(2*ms, true)
	if e := lease.Endpoint(); e != endpoints[1] {
		t.Errorf("the hedge goes to %v", e.Name())
	}
	deliver(r.Release(lease, OK, 2*ms, nil))
	rest := []*caller{newCaller(2 * ms), newCaller(2 * ms), newCaller(2 * ms)}
	rest[0].acquire(t, r, 2*ms, Granted)
	rest[1].acquire(t, r, 2*ms, Granted)
	ask(0, false) // none is free
	rest[2].acquire(t, r, 2*ms, Queued)
	ask(0, false)
	call.release(r, OK, 3*ms)
	for _, c := range rest {
		c.release(r, OK, 4*ms)
	}
	if lease := ask(0, true); lease.Waited() != 0 {
		t.Errorf("a hedge that waited %v", lease.Waited())
	}
}
