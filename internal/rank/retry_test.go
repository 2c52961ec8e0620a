package rank

import (
	"testing"
	"time"
)

// retry asks for another turn and fails the test if the reply is not want.
func (c *caller) retry(tb testing.TB, r *Rank, now time.Duration, want Reply) {
	tb.Helper()
	lease, reply, reason := r.Retry(&c.Ticket, c, now)
	if reply != want || lease.Valid() != (want == Granted) || (reason != NoReason) != (want == Refused) {
		tb.Fatalf("Retry: %v (%v) with lease %v, want %v", reply, reason, lease.Valid(), want)
	}
	c.lease = lease
}

// A retry joins behind those who have had no turn yet, and the time of all its
// turns adds up.
func TestRetry(t *testing.T) {
	r, _ := newRank(t, 2, 1)
	first, second := newCaller(0), newCaller(1*ms)
	first.acquire(t, r, 0, Granted)
	second.acquire(t, r, 1*ms, Queued)
	first.release(r, OK, 2*ms)
	third := newCaller(3 * ms)
	third.acquire(t, r, 3*ms, Queued)
	first.retry(t, r, 4*ms, Queued)
	newCaller(5*ms).acquire(t, r, 5*ms, Refused) // the queue is full
	second.release(r, OK, 6*ms)
	second.retry(t, r, 6*ms, Queued)
	third.release(r, OK, 7*ms)
	first.release(r, OK, 8*ms)
	second.release(r, OK, 9*ms)
	if first.granted != 1 || first.lease.Waited() != 3*ms {
		t.Errorf("granted %d times after %v, want once after 3ms", first.granted, first.lease.Waited())
	}
	if second.granted != 2 || second.lease.Waited() != 3*ms {
		t.Errorf("granted %d times after %v, want twice after 1ms and 2ms", second.granted, second.lease.Waited())
	}
}

// A retry can be refused like a new call: by the length of the queue, or because
// its deadline has passed.
func TestRetryRefused(t *testing.T) {
	r, _ := newRank(t, 1, 1)
	failed, other, third := newCaller(0), newCaller(0), newCaller(0)
	failed.acquire(t, r, 0, Granted)
	other.acquire(t, r, 0, Queued)
	failed.release(r, Failed, 1*ms)
	third.acquire(t, r, 1*ms, Queued)
	failed.retry(t, r, 2*ms, Refused)
	other.release(r, OK, 3*ms)
	third.release(r, OK, 3*ms)
	failed.Request.Deadline = 4 * ms
	failed.retry(t, r, 4*ms, Refused)
	failed.retry(t, r, 3*ms, Granted)
	failed.release(r, OK, 5*ms)
}

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
