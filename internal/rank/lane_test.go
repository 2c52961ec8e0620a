package rank

import (
	"testing"
	"time"
)

// Calls of a lane with reserved slots are answered while all others are in use,
// and nobody else gets these slots.
func TestReservedSlots(t *testing.T) {
	r := New(Options{QueueLength: 10, Lanes: []LaneOptions{{Name: "admin", Reserve: 1}}})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 3}), true, 0, nil)
	a, b, c := newCaller(0), newCaller(0), newCaller(0)
	a.acquire(t, r, 0, Granted)
	b.acquire(t, r, 0, Granted)
	c.acquire(t, r, 0, Queued)
	admin, second := newCaller(0), newCaller(0)
	admin.Request.Lane, second.Request.Lane = 1, 1
	admin.acquire(t, r, 0, Granted)
	second.acquire(t, r, 0, Queued)
	admin.release(r, OK, ms)
	if second.granted != 1 || c.granted != 0 {
		t.Error("the reserved slot went to another lane")
	}
	a.release(r, OK, ms)
	if c.granted != 1 {
		t.Error("a slot that is not reserved stays unused")
	}
}

// Reserved slots leave one slot to all, however many endpoints are down; and who
// waited for a reserved slot is served when fewer can be kept.
func TestReservesLeaveASlot(t *testing.T) {
	for _, byHash := range []bool{false, true} {
		r := New(Options{
			QueueLength: 10, ByHash: byHash,
			Lanes: []LaneOptions{{Name: "admin", Reserve: 2}, {Name: "vip", Reserve: 1}},
		})
		e := make([]*Endpoint, 2)
		for i := range e {
			e[i] = r.Add("worker", EndpointOptions{Slots: 2})
			r.SetReady(e[i], true, 0, nil)
		}
		first, second, third := newCaller(0), newCaller(0), newCaller(0)
		first.acquire(t, r, 0, Granted)
		second.acquire(t, r, 0, Queued)
		r.Remove(e[1-first.lease.Endpoint().Index()], 0)
		if !woken(r) {
			t.Fatal("nobody is asked for a Tick")
		}
		tick(r, 0)
		if second.granted != 0 {
			t.Error("the reserved slot is gone")
		}
		first.release(r, OK, ms)
		if second.granted != 1 {
			t.Error("of two slots both are kept")
		}
		admin := newCaller(0)
		admin.Request.Lane = 1
		admin.acquire(t, r, ms, Granted)
		third.acquire(t, r, ms, Queued)
		second.release(r, OK, ms)
		if third.granted != 1 {
			t.Error("the admin's call has his slot and more is kept for him")
		}
	}
}

// R1: a call that was put back keeps its place whoever comes: its turn had come.
func TestPutBackCallsAreNotEvicted(t *testing.T) {
	r := New(Options{QueueLength: 1, Lanes: []LaneOptions{{Name: "urgent", Priority: 1}}})
	e := r.Add("worker-1", EndpointOptions{Slots: 1})
	r.SetReady(e, true, 0, nil)
	back, urgent := newCaller(0), newCaller(0)
	back.acquire(t, r, 0, Granted)
	back.release(r, RefusedByWorker, 0)
	back.rejoin(t, r, 0, Queued)
	urgent.Request.Lane = 1
	urgent.acquire(t, r, 0, Refused)
	tick(r, 0)
	if len(back.refused) != 0 {
		t.Errorf("the call that was put back was told %v", back.refused)
	}
}

// Long calls of a lane keep to it.
func TestLongCallsKeepTheirLane(t *testing.T) {
	r := New(Options{QueueLength: 10, Lanes: []LaneOptions{{Name: "admin", Priority: 1}}})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 2}), true, 0, nil)
	m := knownMethod(r, time.Minute)
	for range 2 {
		c := with(nil, m, 0)
		c.Request.Lane = 1
		c.acquire(t, r, 0, Granted)
	}
	with(nil, m, 0).acquire(t, r, 0, Queued)
	if s := r.Snapshot(); s.LongCalls != 2 || s.Lanes[2].Waiting != 1 {
		t.Errorf("%+v", s)
	}
}

// A lane of higher priority is served first.
func TestPriorities(t *testing.T) {
	lanes := []LaneOptions{{Name: "batch", Priority: -1}, {Name: "urgent", Priority: 1}}
	r := New(Options{QueueLength: 10, Lanes: lanes})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 1}), true, 0, nil)
	running := newCaller(0)
	running.acquire(t, r, 0, Granted)
	calls := make([]*caller, 3)
	for i, lane := range []uint8{1, 0, 2} { // batch, default, urgent
		calls[i] = newCaller(0)
		calls[i].Request.Lane = lane
		calls[i].acquire(t, r, 0, Queued)
	}
	for _, i := range []int{2, 1, 0} {
		running.release(r, OK, ms)
		if running = calls[i]; running.granted != 1 {
			t.Fatalf("call %d was not served in its turn", i)
		}
	}
}

// With a full queue a call of higher priority takes the place of one that is
// served later, and one of an account with few calls that of the longest.
func TestPlacesInAFullQueue(t *testing.T) {
	r := New(Options{QueueLength: 2, Lanes: []LaneOptions{{Name: "urgent", Priority: 1}}})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 1}), true, 0, nil)
	newCaller(0).acquire(t, r, 0, Granted)
	heavy, light := r.Open("heavy", Terms{}), r.Open("light", Terms{})
	of := func(a *Account) *caller {
		c := newCaller(0)
		c.Request.Account = a
		return c
	}
	first, second, third, other := of(heavy), of(heavy), of(heavy), of(light)
	first.acquire(t, r, 0, Queued)
	second.acquire(t, r, 0, Queued)
	third.acquire(t, r, 0, Refused)
	other.acquire(t, r, 0, Queued)
	if r.Waiting() != 2 || r.Leave(&second.Ticket) {
		t.Error("the newest call of the longest line is still there")
	}
	notices, _ := r.Tick(0, nil)
	deliver(notices)
	if len(second.refused) != 1 || second.refused[0] != QueueFull || !woken(r) {
		t.Errorf("who gave up its place was told %v", second.refused)
	}
	of(light).acquire(t, r, 0, Refused)
	urgent := of(heavy)
	urgent.Request.Lane = 1
	urgent.acquire(t, r, 0, Queued)
	if r.Waiting() != 2 {
		t.Errorf("%d calls wait", r.Waiting())
	}
}
