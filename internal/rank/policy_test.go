package rank

import (
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R21: order, admission and choice are replaceable.
func TestPoliciesAreReplaceable(t *testing.T) {
	busiest := func(_ *Request, free []*Endpoint) *Endpoint {
		return slices.MaxFunc(free, func(a, b *Endpoint) int { return a.busy() - b.busy() })
	}
	noBatch := func(q *Request, state QueueState) Reason {
		if q.Lane == 1 {
			return QueueFull
		}
		return BoundedLength(q, state)
	}
	r := New(Options{QueueLength: 5, Lanes: []LaneOptions{{Name: "batch"}}, Order: newestFirst, Admit: noBatch, Choose: busiest})
	for _, name := range []string{"worker-1", "worker-2"} {
		r.SetReady(r.Add(name, EndpointOptions{Slots: 2}), true, 0, nil)
	}
	running := make([]*caller, 4)
	for i, want := range []bool{false, true, false, true} { // same endpoint as the call before?
		running[i] = newCaller(0)
		running[i].Request.Lane = 1 // a free slot is never shed
		running[i].acquire(t, r, 0, Granted)
		testkit.Want(t, i == 0 || (running[i].lease.Endpoint() == running[i-1].lease.Endpoint()) == want,
			"call %d did not go to the busiest endpoint", i)
	}
	batch := newCaller(0)
	batch.Request.Lane = 1
	batch.acquire(t, r, 0, Refused)
	older, newer := newCaller(0), newCaller(0)
	older.acquire(t, r, 0, Queued)
	newer.acquire(t, r, 0, Queued)
	running[0].release(r, OK, 0)
	testkit.Want(t, newer.granted == 1 && older.granted == 0, "the newest call was not served first")
}

func newestFirst(*OrderState, time.Duration) bool { return true }

// A choice that returns an endpoint without a free slot is caught.
func TestBadChoiceIsAnInternalError(t *testing.T) {
	var chosen *Endpoint
	r := New(Options{Choose: func(*Request, []*Endpoint) *Endpoint { return chosen }})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 1}), true, 0, nil)
	c := newCaller(0)
	expectPanic(t, "choice of nothing", func() { r.Acquire(&c.Ticket, c, 0) })
	chosen = r.Add("worker-2", EndpointOptions{Slots: 1}) // not ready
	expectPanic(t, "choice without a free slot", func() { r.Acquire(&c.Ticket, c, 0) })
}
