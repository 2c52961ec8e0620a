package rank

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
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
		notices := r.SetReady(endpoints[i], true, 0, nil)
		testkit.Need(tb, len(notices) == 0, "notices of a rank without calls: %v", notices)
	}
	return r, endpoints
}

// acquire asks for a slot and fails the test if the reply is not want.
func (c *caller) acquire(tb testing.TB, r *Rank, now time.Duration, want Reply) {
	tb.Helper()
	lease, reply, reason := r.Acquire(&c.Ticket, c, now)
	testkit.Need(tb, reply == want, "Acquire: %v (%v), want %v", reply, reason, want)
	testkit.Need(tb, lease.Valid() == (want == Granted) && (reason != NoReason) == (want == Refused),
		"Acquire: %v with lease %v and reason %v", reply, lease.Valid(), reason)
	c.lease = lease
}

// rejoin puts a call back and fails the test if the reply is not want.
func (c *caller) rejoin(tb testing.TB, r *Rank, now time.Duration, want Reply) {
	tb.Helper()
	lease, reply := r.Rejoin(&c.Ticket, c, now)
	testkit.Need(tb, reply == want && lease.Valid() == (want == Granted), "Rejoin: %v with lease %v, want %v", reply, lease.Valid(), want)
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
		text, ok := recover().(string)
		testkit.Want(t, ok && strings.HasPrefix(text, "internal error: "), "%s: panic %q, want an internal error", what, text)
	}()
	do()
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
	for _, o := range []EndpointOptions{{}, {Slots: 1, Most: 5}, {Slots: 1, Least: 2, Most: 5}, {Slots: 6, Least: 2, Most: 5}} {
		expectPanic(t, "Add without slots, or beyond their bounds", func() { r.Add("worker-2", o) })
	}
	a.release(r, OK, 0) // a panic leaves the rank usable
	account := r.Open("a", Terms{})
	r.Close(account)
	expectPanic(t, "Close once too often", func() { r.Close(account) })
}

// Every value has a name of its own, the unknown ones too.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint8(6) {
		for _, name := range []string{"v:" + Reply(i).String(), "r:" + Reason(i).String()} {
			testkit.Want(t, !seen[name], "%q names two values", name)
			seen[name] = true
		}
	}
	testkit.Want(t, QueueFull.String() == "queue_full" && Queued.String() == "queued", "a name that metrics or logs use has changed")
}
