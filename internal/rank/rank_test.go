package rank

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// caller is a call that notes what it is told.
type caller struct {
	Ticket

	lease   Lease
	granted int
	refused []Reason
}

func (c *caller) Granted(l Lease)  { c.lease = l; c.granted++ }
func (c *caller) Refused(r Reason) { c.refused = append(c.refused, r) }

// newCaller returns a call that arrives at an instant.
func newCaller(arrived time.Duration) *caller {
	c := &caller{}
	c.Request.Arrived = arrived
	return c
}

// newRank returns a rank with a ready endpoint for each number of slots.
func newRank(tb testing.TB, queue int, slots ...int) (*Rank, []*Endpoint) {
	tb.Helper()
	r := New(Options{QueueLength: queue})
	endpoints := make([]*Endpoint, len(slots))
	for i, n := range slots {
		endpoints[i] = r.Add(fmt.Sprintf("worker-%d", i+1), EndpointOptions{Slots: n, OnCancel: Free})
		if notices := r.SetReady(endpoints[i], true, 0, nil); len(notices) != 0 {
			tb.Fatalf("notices of a rank without calls: %v", notices)
		}
	}
	return r, endpoints
}

// acquire asks for a slot and fails the test if the reply is not want.
func (c *caller) acquire(tb testing.TB, r *Rank, now time.Duration, want Reply) {
	tb.Helper()
	lease, reply, reason := r.Acquire(&c.Ticket, c, now)
	if reply != want {
		tb.Fatalf("Acquire: %v (%v), want %v", reply, reason, want)
	}
	if lease.Valid() != (want == Granted) || (reason != NoReason) != (want == Refused) {
		tb.Fatalf("Acquire: %v with lease %v and reason %v", reply, lease.Valid(), reason)
	}
	c.lease = lease
}

// rejoin puts a call back and fails the test if the reply is not want.
func (c *caller) rejoin(tb testing.TB, r *Rank, now time.Duration, want Reply) {
	tb.Helper()
	lease, reply := r.Rejoin(&c.Ticket, c, now)
	if reply != want || lease.Valid() != (want == Granted) {
		tb.Fatalf("Rejoin: %v with lease %v, want %v", reply, lease.Valid(), want)
	}
	c.lease = lease
}

// release ends the lease, delivers the notices and returns how many there were.
func (c *caller) release(r *Rank, o Outcome, now time.Duration) int {
	return deliver(r.Release(c.lease, o, now, nil))
}

func deliver(notices []Notice) int {
	for _, g := range notices {
		g.Deliver()
	}
	return len(notices)
}

func tick(r *Rank, now time.Duration) (notices int, next time.Duration) {
	list, next := r.Tick(now, nil)
	return deliver(list), next
}

func woken(r *Rank) bool {
	select {
	case <-r.Wake():
		return true
	default:
		return false
	}
}

func expectPanic(t *testing.T, what string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "internal error: ") {
			t.Errorf("%s: panic %q, want an internal error", what, text)
		}
	}()
	do()
}

// A free slot is taken at once, on the endpoint with the smallest share in use;
// ties go round.
func TestLeastLoadedWithTiesRotated(t *testing.T) {
	tests := []struct {
		name  string
		slots []int
		want  []int // endpoint of each call, none released
	}{
		{"one endpoint", []int{3}, []int{0, 0, 0}},
		{"equal endpoints go round", []int{2, 2, 2}, []int{0, 1, 2, 0, 1, 2}},
		{"one slot each go round", []int{1, 1, 1}, []int{0, 1, 2}},
		{"share, not number", []int{1, 4}, []int{0, 1, 1, 1, 1}},
		{"twice the slots, twice the calls", []int{2, 4}, []int{0, 1, 1, 0, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, _ := newRank(t, 0, test.slots...)
			var got []int
			for range test.want {
				c := newCaller(0)
				c.acquire(t, r, 0, Granted)
				got = append(got, c.lease.Endpoint().Index())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("endpoints %v, want %v", got, test.want)
			}
			newCaller(0).acquire(t, r, 0, Refused)
		})
	}
}

// Calls one after another, each on an idle rank, visit all endpoints in turn.
func TestTiesRotateOverIdleEndpoints(t *testing.T) {
	r, _ := newRank(t, 0, 5, 5, 5, 5)
	c := newCaller(0)
	for i := range 12 {
		c.acquire(t, r, 0, Granted)
		if got := c.lease.Endpoint().Index(); got != i%4 {
			t.Fatalf("call %d went to endpoint %d, want %d", i, got, i%4)
		}
		c.release(r, OK, 0)
	}
}

// A freed slot goes to the head of the queue, in the order of arrival, and the
// lease says how long the call waited.
func TestFreedSlotGoesToTheHead(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	running := newCaller(0)
	running.acquire(t, r, 0, Granted)
	queue := make([]*caller, 3)
	for i := range queue {
		now := time.Duration(i+1) * ms
		queue[i] = newCaller(now)
		queue[i].acquire(t, r, now, Queued)
	}
	if r.Waiting() != 3 {
		t.Fatalf("%d calls wait, want 3", r.Waiting())
	}
	for i, c := range queue {
		now := time.Duration(10+i) * ms
		if n := running.release(r, OK, now); n != 1 || c.granted != 1 {
			t.Fatalf("release %d made %d notices, call granted %d times", i, n, c.granted)
		}
		if c.lease.Waited() != 9*ms || c.lease.At() != now {
			t.Errorf("call %d waited %v until %v, want 9ms until %v", i, c.lease.Waited(), c.lease.At(), now)
		}
		running = c
	}
	if n := running.release(r, OK, 20*ms); n != 0 || r.Waiting() != 0 {
		t.Errorf("empty queue: %d notices, %d waiting", n, r.Waiting())
	}
}

// The queue holds QueueLength calls and refuses the next one; 0 is legal.
func TestQueueIsBounded(t *testing.T) {
	for _, length := range []int{0, 1, 3} {
		r, _ := newRank(t, length, 1)
		newCaller(0).acquire(t, r, 0, Granted)
		for range length {
			newCaller(0).acquire(t, r, 0, Queued)
		}
		c := newCaller(0)
		if _, reply, reason := r.Acquire(&c.Ticket, c, 0); reply != Refused || reason != QueueFull {
			t.Errorf("queue of %d: %v, %v, want refused, queue_full", length, reply, reason)
		}
		if r.Waiting() != length {
			t.Errorf("queue of %d holds %d", length, r.Waiting())
		}
	}
}

// While no endpoint is ready calls wait like any others, and the first that
// becomes ready takes as many as it has slots.
func TestCallsWaitWhileNoneIsReady(t *testing.T) {
	r := New(Options{QueueLength: 3})
	e := r.Add("worker-1", EndpointOptions{Slots: 2})
	calls := make([]*caller, 3)
	for i := range calls {
		calls[i] = newCaller(0)
		calls[i].acquire(t, r, 0, Queued)
	}
	newCaller(0).acquire(t, r, 0, Refused)
	if n := deliver(r.SetReady(e, true, 5*ms, nil)); n != 2 || r.Ready() != 1 {
		t.Fatalf("%d notices with %d ready, want 2 with 1", n, r.Ready())
	}
	if calls[0].granted != 1 || calls[1].granted != 1 || calls[2].granted != 0 {
		t.Errorf("granted %d, %d, %d times, want 1, 1, 0", calls[0].granted, calls[1].granted, calls[2].granted)
	}
}

// An endpoint that is not ready gets no new lease; its leases go on, and its
// freed slots stay unused until it is ready again.
func TestNotReadyGetsNoNewLease(t *testing.T) {
	r, e := newRank(t, 10, 1, 1)
	a, b, c := newCaller(0), newCaller(0), newCaller(0)
	a.acquire(t, r, 0, Granted)
	b.acquire(t, r, 0, Granted)
	c.acquire(t, r, 0, Queued)
	r.SetReady(e[0], false, 0, nil)
	r.SetReady(e[0], false, 0, nil) // said twice counts once
	if r.Ready() != 1 {
		t.Fatalf("%d ready, want 1", r.Ready())
	}
	if n := a.release(r, OK, 0); n != 0 {
		t.Fatal("a slot that is not ready was granted")
	}
	if n := b.release(r, OK, 0); n != 1 || c.lease.Endpoint() != e[1] {
		t.Fatal("the ready slot was not granted")
	}
	a.acquire(t, r, 0, Queued)
	if n := deliver(r.SetReady(e[0], true, 0, nil)); n != 1 || a.lease.Endpoint() != e[0] {
		t.Fatal("the endpoint became ready and its slot was not granted")
	}
}

// A removed endpoint tolerates late releases and every further word about it;
// its index is not given again.
func TestRemoveToleratesLateReleases(t *testing.T) {
	r, e := newRank(t, 10, 2, 1)
	a, b, c, d := newCaller(0), newCaller(0), newCaller(0), newCaller(0)
	a.acquire(t, r, 0, Granted) // endpoint 0
	b.acquire(t, r, 0, Granted) // endpoint 1
	c.acquire(t, r, 0, Granted) // endpoint 0
	d.acquire(t, r, 0, Queued)
	a.release(r, RefusedByWorker, 0)
	r.Remove(e[0], 0)
	r.Remove(e[0], 0)
	if n := c.release(r, RefusedByWorker, 0); n != 0 {
		t.Error("a removed endpoint's slot was granted")
	}
	if n := len(r.SetReady(e[0], true, 0, nil)); n != 0 || r.Ready() != 1 {
		t.Errorf("a removed endpoint became ready: %d notices, %d ready", n, r.Ready())
	}
	if n, next := tick(r, time.Second); n != 0 || next != 0 {
		t.Errorf("pauses of a removed endpoint are left: %d notices, next %v", n, next)
	}
	if n := b.release(r, OK, 0); n != 1 || d.lease.Endpoint() != e[1] {
		t.Error("the endpoint that is left did not get the call")
	}
	if i := r.Add("worker-3", EndpointOptions{Slots: 1}).Index(); i != 2 {
		t.Errorf("index %d, want 2", i)
	}
	if s := r.Snapshot(); len(s.Endpoints) != 2 || s.Endpoints[0].Name != "worker-2" {
		t.Errorf("snapshot %+v, want worker-2 and worker-3", s)
	}
}

// Leave takes a call out of the queue once, wherever it stands.
func TestLeave(t *testing.T) {
	for leaver := range 3 {
		r, _ := newRank(t, 10, 1)
		running := newCaller(0)
		running.acquire(t, r, 0, Granted)
		var queue []*caller
		for range 3 {
			c := newCaller(0)
			c.acquire(t, r, 0, Queued)
			queue = append(queue, c)
		}
		gone := queue[leaver]
		if !r.Leave(&gone.Ticket) || r.Leave(&gone.Ticket) || r.Waiting() != 2 {
			t.Fatalf("call %d did not leave exactly once", leaver)
		}
		for _, c := range slices.Delete(queue, leaver, leaver+1) {
			running.release(r, OK, 0)
			if c.granted != 1 {
				t.Fatalf("after call %d left, the next one was not granted", leaver)
			}
			running = c
		}
		if gone.granted != 0 || len(gone.refused) != 0 {
			t.Error("a call that left was told something")
		}
	}
}

// Leave is false for a call that is not in the queue: it never was, its grant
// is on its way, or it runs.
func TestLeaveOfACallNotInTheQueue(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	a, b := newCaller(0), newCaller(0)
	if r.Leave(&a.Ticket) {
		t.Error("a fresh ticket left")
	}
	a.acquire(t, r, 0, Granted)
	if r.Leave(&a.Ticket) {
		t.Error("a running call left")
	}
	b.acquire(t, r, 0, Queued)
	notices := r.Release(a.lease, OK, 0, nil)
	if r.Leave(&b.Ticket) {
		t.Error("a call left whose grant was on its way")
	}
	if deliver(notices); b.granted != 1 {
		t.Error("the grant did not arrive")
	}
}

// A call whose deadline has passed is refused when it asks, and when its turn
// comes; the slot goes to the next one in the same step.
func TestDeadlineHasPassed(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	running, late, next := newCaller(0), newCaller(0), newCaller(0)
	running.acquire(t, r, 0, Granted)
	late.Request.Deadline = 5 * ms
	late.acquire(t, r, 0, Queued)
	next.Request.Deadline = 5*ms + 1
	next.acquire(t, r, 0, Queued)
	if n := running.release(r, OK, 5*ms); n != 2 {
		t.Fatalf("%d notices, want a refusal and a lease", n)
	}
	if !slices.Equal(late.refused, []Reason{DeadlineExceeded}) || late.granted != 0 {
		t.Errorf("late call: refused %v, granted %d times", late.refused, late.granted)
	}
	if next.granted != 1 || r.Waiting() != 0 {
		t.Errorf("next call granted %d times, %d wait", next.granted, r.Waiting())
	}
	next.release(r, OK, 5*ms)
	if _, reply, reason := r.Acquire(&late.Ticket, late, 5*ms); reply != Refused || reason != DeadlineExceeded {
		t.Errorf("late call on a free slot: %v, %v", reply, reason)
	}
	if _, reply := r.Rejoin(&late.Ticket, late, 5*ms); reply != Refused {
		t.Errorf("late call put back: %v", reply)
	}
}

// Instants of different callers may be slightly out of order.
func TestInstantsOutOfOrder(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	a, b := newCaller(0), newCaller(0)
	a.acquire(t, r, 5*ms, Granted)
	b.acquire(t, r, 5*ms, Queued)
	a.release(r, OK, 4*ms)
	if b.lease.Waited() != 0 {
		t.Errorf("waited %v, want 0", b.lease.Waited())
	}
}

// A lease ends exactly once, also if its ticket has a new one by now.
func TestMisuseIsAnInternalError(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	a, b := newCaller(0), newCaller(0)
	a.acquire(t, r, 0, Granted)
	first := a.lease
	expectPanic(t, "Acquire on a lease", func() { r.Acquire(&a.Ticket, a, 0) })
	b.acquire(t, r, 0, Queued)
	expectPanic(t, "Acquire while waiting", func() { r.Acquire(&b.Ticket, b, 0) })
	expectPanic(t, "Rejoin while waiting", func() { r.Rejoin(&b.Ticket, b, 0) })
	r.Leave(&b.Ticket)
	a.release(r, OK, 0)
	expectPanic(t, "second Release", func() { r.Release(first, OK, 0, nil) })
	a.acquire(t, r, 0, Granted)
	expectPanic(t, "Release of the ticket's earlier lease", func() { r.Release(first, OK, 0, nil) })
	expectPanic(t, "Release of no lease", func() { r.Release(Lease{}, OK, 0, nil) })
	expectPanic(t, "Add without slots", func() { r.Add("worker-2", EndpointOptions{}) })
	a.release(r, OK, 0) // a panic leaves the rank usable
}

func TestSnapshot(t *testing.T) {
	r, e := newRank(t, 10, 2, 3)
	calls := make([]*caller, 5)
	for i := range calls {
		calls[i] = newCaller(0)
		calls[i].acquire(t, r, 0, Granted)
	}
	newCaller(0).acquire(t, r, 0, Queued)
	calls[0].release(r, RefusedByWorker, 0) // endpoint 0
	r.SetReady(e[1], false, 0, nil)
	got := r.Snapshot()
	want := []EndpointState{
		{Name: "worker-1", Slots: 2, Limit: 2, InFlight: 1, Paused: 1, Ready: true, Pace: 1},
		{Name: "worker-2", Slots: 3, Limit: 3, InFlight: 3, Pace: 1},
	}
	if got.Waiting != 1 || !slices.Equal(got.Endpoints, want) {
		t.Errorf("snapshot %+v, want %+v and 1 waiting", got, want)
	}
}

// Every value has a name of its own, the unknown ones too.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint8(6) {
		for _, name := range []string{"v:" + Reply(i).String(), "r:" + Reason(i).String()} {
			if seen[name] {
				t.Errorf("%q names two values", name)
			}
			seen[name] = true
		}
	}
	if QueueFull.String() != "queue_full" || Queued.String() != "queued" {
		t.Error("a name that metrics or logs use has changed")
	}
}
