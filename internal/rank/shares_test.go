package rank

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// knownMethod returns a method whose calls take so long.
func knownMethod(r *Rank, takes time.Duration) *Method {
	m := r.Method("/a.B/" + takes.String())
	for range enough {
		m.observe(takes, 0)
	}
	return m
}

// Calls that were expected to take long and do not have nobody pay but, for a
// while, their own caller.
func TestCallsThatEndEarlyPutNobodyInDebt(t *testing.T) {
	r, _ := newRank(t, 10, 50)
	long := knownMethod(r, 9*time.Second)
	a, b := r.Open("a", Terms{}), r.Open("b", Terms{})
	calls := make([]*caller, 50)
	for i := range calls {
		calls[i] = with(a, long, 0)
		calls[i].acquire(t, r, 0, Granted)
	}
	waiting := backlog(t, r, b, nil, 3, ms)
	for _, c := range calls {
		c.release(r, OK, 2*ms)
	}
	if r.owes(b) || r.owes(a) || waiting[2].granted != 1 {
		t.Errorf("owes: %v, who waited; %v, who had 100 ms of 50 slots", r.owes(b), r.owes(a))
	}
}

// The like of them are no way to be rid of what was used before.
func TestCallsThatEndEarlyPayForNothingElse(t *testing.T) {
	r, _ := newRank(t, 10, 10)
	long := knownMethod(r, 9*time.Second)
	a := r.Open("a", Terms{})
	r.Open("b", Terms{})
	c := with(a, nil, 0)
	c.acquire(t, r, 0, Granted)
	c.release(r, Failed, 10*time.Second)
	calls := make([]*caller, 5)
	for i := range calls {
		calls[i] = with(a, long, 0)
		calls[i].acquire(t, r, 10*time.Second, Granted)
	}
	for _, c := range calls {
		c.release(r, Failed, 14*time.Second)
	}
	if left := time.Duration(a.use); left < 4*time.Second { // of the first call alone
		t.Errorf("of 30 s of slot time, most of it used just now, %v are left", left)
	}
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
		if !slices.Equal(served(scale, 0), want) {
			t.Errorf("weights of %v times as much share otherwise", scale)
		}
	}
	if !slices.Equal(served(1, 3*365*24*time.Hour), want) {
		t.Error("three years later they share otherwise")
	}
}

// A caller with the smallest weight who has all slots to himself for months does
// not wear out the clock.
func TestNobodyWearsOutTheClock(t *testing.T) {
	r, _ := newRank(t, 10, 1000)
	small, other := r.Open("small", Terms{Weight: 0.01}), r.Open("other", Terms{})
	now := time.Duration(0)
	for range 1000 {
		calls := make([]*caller, 1000)
		for i := range calls {
			calls[i] = with(small, nil, now)
			calls[i].acquire(t, r, now, Granted)
		}
		waiting := with(other, nil, now)
		waiting.acquire(t, r, now, Queued)
		r.Leave(&waiting.Ticket)
		now += 24 * time.Hour
		for _, c := range calls {
			c.release(r, Failed, now)
		}
		if r.owes(other) || r.owes(small) {
			t.Fatalf("after %v: the small one owes: %v, the other one: %v", now, r.owes(small), r.owes(other))
		}
	}
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
	if len(a.flows) != 4 {
		t.Errorf("it waits in %d queues, want 4", len(a.flows))
	}
	for _, c := range calls {
		c.release(r, OK, ms)
	}
	if len(a.flows) != 0 || len(r.pool.flows) != 4 {
		t.Errorf("%d queues are left; %d may be used again, want 4", len(a.flows), len(r.pool.flows))
	}
}

// A debtor who comes and goes takes one place among debtors.
func TestADebtorIsKeptOnce(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	r.Open("other", Terms{})
	for range 10 {
		a := r.Open("a", Terms{})
		a.shares[0].had = float64(time.Hour)
		r.Close(a)
	}
	if n := len(r.debtors); n != 1 {
		t.Errorf("it is kept %d times", n)
	}
}
