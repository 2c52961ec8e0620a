package rank

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// knownMethod returns a method whose calls take so long.
func knownMethod(r *Rank, takes time.Duration) *Method {
	m := r.Method("/a.B/" + takes.String())
	for range enough {
		m.observe(takes, 0)
	}
	return m
}

// What is shared by weights does not depend on their scale, and not on how long
// the program runs.
func TestWeightsAreProportions(t *testing.T) {
	served := func(scale float64, now time.Duration) (order []string) {
		r, _ := newRank(t, 100, 1)
		m := r.Method("/a.B/C")
		for range enough {
			m.observe(100*ms, now)
		}
		running := with(r.Open("first", Terms{Weight: scale}), m, now)
		running.acquire(t, r, now, Granted)
		var calls []*caller
		for i, weight := range []float64{7, 2, 1} {
			a := r.Open(fmt.Sprint(i), Terms{Weight: weight * scale})
			calls = append(calls, backlog(t, r, a, m, 2, now)...)
		}
		for range 400 {
			now += 100 * ms
			running.release(r, OK, now)
			running = calls[slices.IndexFunc(calls, func(c *caller) bool { return c.lease.active() })]
			order = append(order, running.account.key)
			calls = slices.DeleteFunc(calls, func(c *caller) bool { return c == running })
			calls = append(calls, backlog(t, r, running.account, m, 1, now)...)
		}
		return order
	}
	want := served(1, 0)
	for _, scale := range []float64{1.0 / 64, 64} {
		testkit.Want(t, slices.Equal(served(scale, 0), want), "weights of %v times as much share otherwise", scale)
	}
	testkit.Want(t, slices.Equal(served(1, 3*365*24*time.Hour), want), "three years later they share otherwise")
}

// When the shares of many change at once they are not all looked at at once.
func TestFewChangeAtOnce(t *testing.T) {
	r, e := newRank(t, 1000, 400)
	m := knownMethod(r, 20*ms)
	holder := with(nil, m, 0)
	holder.acquire(t, r, 0, Granted)
	r.SetReady(e[0], false, 0, nil)
	for i := range 500 {
		backlog(t, r, r.Open(fmt.Sprint(i), Terms{}), m, 1, 0)
	}
	l := &r.queue.lanes[0]
	l.next(400, 0)
	if n := len(l.greedy.flows); n != 0 {
		t.Fatalf("%d callers with one call each are taken for greedy", n)
	}
	for range 10 {
		before := len(l.greedy.flows)
		l.next(1, 0)
		if n := len(l.greedy.flows) - before; n < 1 || n > mostChanged {
			t.Fatalf("%d have changed their place at once", n)
		}
	}
}

// An account costs nothing for the queues in which it does not wait any more, be
// they of endpoints that are gone.
func TestQueuesAreLeftBehind(t *testing.T) {
	r, _ := hashing(1, 1, 1, 1)
	a := r.Open("a", Terms{})
	var calls []*caller
	for i := range uint64(12) {
		c := with(a, nil, 0)
		c.Request.Hash = i // the bound on an endpoint's calls spreads them
		c.lease, _, _ = r.Acquire(&c.Ticket, c, 0)
		calls = append(calls, c)
	}
	testkit.Want(t, len(a.flows) == 4, "it waits in %d queues, want 4", len(a.flows))
	for _, c := range calls {
		c.release(r, OK, ms)
	}
	testkit.Want(t, len(a.flows) == 0 && len(r.pool.flows) == 4,
		"%d queues are left; %d may be used again, want 4", len(a.flows), len(r.pool.flows))
}
