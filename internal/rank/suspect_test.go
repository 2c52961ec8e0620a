package rank

import "testing"

// R6: a suspect endpoint keeps its calls, gets no new ones and counts as ready;
// when it has spoken its slots go to those who waited.
func TestSuspectGetsNoNewCalls(t *testing.T) {
	r, e := newRank(t, 10, 2, 1)
	a := newCaller(0)
	a.acquire(t, r, 0, Granted)
	if n := len(r.SetSuspect(a.lease.Endpoint(), true, 0, nil)); n != 0 || r.Ready() != 2 || r.InFlight(e[0]) != 1 {
		t.Fatalf("%d notices, %d ready, %d in flight", n, r.Ready(), r.InFlight(e[0]))
	}
	b, c := newCaller(0), newCaller(0)
	b.acquire(t, r, 0, Granted)
	if b.lease.Endpoint() != e[1] {
		t.Errorf("the call went to %s", b.lease.Endpoint().Name())
	}
	c.acquire(t, r, 0, Queued)
	a.release(r, OK, ms)
	if c.granted != 0 || !r.Snapshot().Endpoints[0].Suspect {
		t.Error("the suspect got a call")
	}
	if n := deliver(r.SetSuspect(e[0], false, 2*ms, nil)); n != 1 || c.lease.Endpoint() != e[0] {
		t.Errorf("%d notices after the first byte, want one on %s", n, e[0].Name())
	}
}

// A suspicion ends with the process that it was about, and there is none of an
// endpoint that is not ready.
func TestSuspicionEndsWithReadiness(t *testing.T) {
	r, e := newRank(t, 10, 1)
	r.SetSuspect(e[0], true, 0, nil)
	r.SetReady(e[0], false, 0, nil)
	r.SetSuspect(e[0], true, 0, nil)
	r.SetReady(e[0], true, 0, nil)
	a := newCaller(0)
	a.acquire(t, r, 0, Granted)
	a.release(r, OK, ms)
	r.SetSuspect(e[0], true, ms, nil)
	r.Remove(e[0], ms)
	if n := len(r.SetSuspect(e[0], false, ms, nil)); n != 0 || r.Ready() != 0 {
		t.Errorf("%d notices, %d ready", n, r.Ready())
	}
}
