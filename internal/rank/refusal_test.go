package rank

import (
	"testing"
	"time"
)

// R1: a slot that pauses is not free before Tick, and Tick asks for the
// earliest end whatever the order in which pauses began.
func TestPausesEndInOrder(t *testing.T) {
	r, e := newRank(t, 10, 1, 1, 1)
	calls := []*caller{newCaller(0), newCaller(0), newCaller(0)}
	for _, c := range calls {
		c.acquire(t, r, 0, Granted)
	}
	r.ReleaseAt(calls[0].lease, Cancelled, 30*ms, 0, nil)
	if !woken(r) {
		t.Error("no wake-up for the first pause")
	}
	r.ReleaseAt(calls[1].lease, OK, 10*ms, 0, nil)
	if !woken(r) {
		t.Error("no wake-up for an earlier pause")
	}
	r.ReleaseAt(calls[2].lease, RefusedByWorker, 20*ms, 0, nil)
	if woken(r) {
		t.Error("a wake-up for a later pause")
	}
	for _, c := range calls {
		c.acquire(t, r, 5*ms, Queued)
	}
	for i, want := range []struct {
		endpoint *Endpoint
		next     time.Duration
	}{{e[1], 20 * ms}, {e[2], 30 * ms}, {e[0], 0}} {
		n, next := tick(r, time.Duration(i+1)*10*ms)
		if n != 1 || next != want.next || calls[i].lease.Endpoint() != want.endpoint {
			t.Errorf("tick %d: %d notices, next %v, endpoint %v", i, n, next, calls[i].lease.Endpoint())
		}
	}
}

// An until that is over makes ReleaseAt a Release.
func TestReleaseAtInThePast(t *testing.T) {
	r, _ := newRank(t, 0, 1)
	c := newCaller(0)
	c.acquire(t, r, 0, Granted)
	r.ReleaseAt(c.lease, Cancelled, 3*ms, 5*ms, nil)
	if woken(r) {
		t.Error("a wake-up without a pause")
	}
	c.acquire(t, r, 5*ms, Granted)
}

// A slot whose call was told that no thread is free, and does not come back, pauses as long
// as such calls usually run: a worker that says so at once gets no more calls than others.
func TestMaybeRefusedPausesAsCallsRun(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	c := newCaller(0)
	c.Request.Method = r.Method("m")
	now := time.Second
	for range 2 * enough {
		c.acquire(t, r, now, Granted)
		now += 20 * ms
		c.release(r, OK, now)
	}
	c.acquire(t, r, now, Granted)
	c.release(r, MaybeRefused, now)
	_, next := tick(r, now)
	if pause := next - now; pause < 18*ms || pause > 22*ms {
		t.Errorf("the slot pauses for %v, want 20ms", pause)
	}
	now = next
	tick(r, now)
	c.Request.Method = r.Method("nobody knows")
	c.acquire(t, r, now, Granted)
	c.release(r, MaybeRefused, now)
	if _, next := tick(r, now); next-now != minPause {
		t.Errorf("of a method that nobody knows the slot pauses for %v, want %v", next-now, minPause)
	}
}
