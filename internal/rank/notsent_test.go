package rank

import (
	"testing"
	"time"
)

// R15: an endpoint that cannot be reached has all its idle slots pause at once, and
// those that run meanwhile go on; others are found at the first try.
func TestUnreachableEndpointPausesAsAWhole(t *testing.T) {
	r, _ := newRank(t, 10, 5)
	running, lost := newCaller(0), newCaller(0)
	running.acquire(t, r, 0, Granted)
	lost.acquire(t, r, 0, Granted)
	if notices := r.ReleaseAt(lost.lease, NotSent, 20*ms, 0, nil); len(notices) != 0 || !woken(r) {
		t.Errorf("%d notices, or no wake-up", len(notices))
	}
	if e := r.Snapshot().Endpoints[0]; e.Paused != 4 || e.InFlight != 1 {
		t.Errorf("%d slots pause, %d are in use", e.Paused, e.InFlight)
	}
	waits := newCaller(0)
	waits.acquire(t, r, 0, Queued)
	running.release(r, OK, 10*ms)
	if e := r.Snapshot().Endpoints[0]; e.InFlight != 1 {
		t.Error("the slot of a call that ran serves the next one")
	}
	if _, next := tick(r, 19*ms); next != 20*ms {
		t.Errorf("the pause ends at %v", next)
	}
	if _, next := tick(r, 20*ms); next != 0 || r.Snapshot().Endpoints[0].Paused != 0 {
		t.Errorf("still paused, until %v", next)
	}
	waits.release(r, OK, 30*ms)
}

// R5: a call that its worker has never seen leaves no ghost, teaches nothing, and
// costs its account nothing.
func TestNotSentLeavesNothing(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	c := newCaller(0)
	for now := time.Duration(0); now < 100*ms; now += ms {
		c.acquire(t, r, now, Granted)
		c.release(r, NotSent, now)
	}
	if e := r.Snapshot().Endpoints[0]; e.Paused != 0 || e.InFlight != 0 {
		t.Errorf("%d slots pause, %d are in use", e.Paused, e.InFlight)
	}
}
