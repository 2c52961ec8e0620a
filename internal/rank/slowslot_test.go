package rank

import (
	"testing"
	"time"
)

// slowRank is a rank of a fast and a slow endpoint, one slot each, whose calls take
// 20 ms, and a call that runs on the fast one.
func slowRank(tb testing.TB, queue int) (r *Rank, slow *Endpoint, m *Method, running *caller) {
	tb.Helper()
	r, e := newRank(tb, queue, 1, 1)
	m = knownMethod(r, 20*ms)
	e[0].pace = pace{count: paceRuns}
	e[1].pace = pace{count: paceRuns, mean: 4 * 4 * paceUnit, runs: longRuns, long: 4 * 4 * paceUnit, slow: true, octaves: 4}
	r.slow, r.verySlow = 1, 1
	running = with(nil, m, 0)
	running.acquire(tb, r, 0, Granted)
	if running.lease.Endpoint() != e[0] {
		tb.Fatal("the first call went to the slow endpoint")
	}
	return r, e[1], m, running
}

// A call waits for a fast slot rather than take one that is sixteen times as slow.
func TestCallsForgoVerySlowSlots(t *testing.T) {
	r, slow, m, running := slowRank(t, 100)
	waits := with(nil, m, 0)
	waits.acquire(t, r, 0, Queued)
	running.release(r, OK, 10*ms)
	if waits.granted != 1 || waits.lease.Endpoint() == slow {
		t.Error("the call did not get the fast slot")
	}
	if r.Decisions()["waited_for_faster"] != 1 {
		t.Errorf("%v", r.Decisions())
	}
}

// When so many wait that it relieves them, it is used.
func TestManyCallsTakeVerySlowSlots(t *testing.T) {
	r, slow, m, _ := slowRank(t, 100)
	backlog(t, r, nil, m, 3, 0)
	c := with(nil, m, 0)
	lease, reply, _ := r.Acquire(&c.Ticket, c, 0)
	if reply != Queued { // behind the others, one of whom is served at the next turn
		t.Fatalf("%v at %v", reply, lease.Endpoint().Name())
	}
	if notices, _ := r.Tick(0, nil); len(notices) != 1 || notices[0].Lease.Endpoint() != slow {
		t.Errorf("%d notices", len(notices))
	}
}

// It is used, too, when the fast one serves nobody for as long as it would take.
func TestVerySlowSlotsServeWhenNothingMoves(t *testing.T) {
	r, slow, m, _ := slowRank(t, 100)
	waits := with(nil, m, 0)
	waits.acquire(t, r, 0, Queued)
	if !woken(r) {
		t.Fatal("no Tick is asked for")
	}
	notices, next := r.Tick(0, nil)
	if len(notices) != 0 || next < 200*ms || next > 400*ms {
		t.Fatalf("%d notices at once, the next look at %v", len(notices), next)
	}
	if notices, _ = r.Tick(next, nil); deliver(notices) != 1 || waits.lease.Endpoint() != slow {
		t.Error("the call waits for ever")
	}
}

// It is used when nobody may wait, and when there is no other.
func TestVerySlowSlotsServeWhoCannotWait(t *testing.T) {
	r, slow, m, _ := slowRank(t, 0)
	c := with(nil, m, 0)
	c.acquire(t, r, 0, Granted)
	if c.lease.Endpoint() != slow {
		t.Error("there are two free slots")
	}
	r, slow, m, running := slowRank(t, 100)
	waits := with(nil, m, 0)
	waits.acquire(t, r, 0, Queued)
	deliver(r.SetReady(running.lease.Endpoint(), false, ms, nil))
	if waits.granted != 1 || waits.lease.Endpoint() != slow {
		t.Error("the call waits for an endpoint that is not there")
	}
}

// The look that is due does not depend on the slow endpoint's pauses: they may end.
func TestCallsThatForgoAreNotForgotten(t *testing.T) {
	r, slow, m, _ := slowRank(t, 100)
	slow.slots, slow.limit = 2, 2
	r.refresh(slow)
	r.pause(pause{until: time.Hour, endpoint: slow, slots: 1})
	waits := with(nil, m, 0)
	waits.acquire(t, r, 0, Queued)
	deliver(r.EndPauses(slow, ms, nil))
	notices, next := r.Tick(2*ms, nil)
	if len(notices) != 0 || next == 0 || next > time.Second {
		t.Fatalf("%d notices, the next look at %v", len(notices), next)
	}
	if notices, _ = r.Tick(next, nil); deliver(notices) != 1 || waits.lease.Endpoint() != slow {
		t.Error("the call waits for ever")
	}
}
