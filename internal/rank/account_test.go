package rank

import (
	"slices"
	"testing"
	"time"
)

// with returns a call of an account and a method.
func with(a *Account, m *Method, arrived time.Duration) *caller {
	c := newCaller(arrived)
	c.Request.Account, c.Request.Method = a, m
	return c
}

// backlog has calls of an account wait, and returns them.
func backlog(tb testing.TB, r *Rank, a *Account, m *Method, n int, now time.Duration) []*caller {
	tb.Helper()
	calls := make([]*caller, n)
	for i := range calls {
		calls[i] = with(a, m, now)
		calls[i].acquire(tb, r, now, Queued)
	}
	return calls
}

// next ends the call that has the one slot, and returns which of those that wait has it now.
func (c *caller) next(r *Rank, now time.Duration, waiting []*caller) *caller {
	c.release(r, OK, now)
	for _, other := range waiting {
		if other.granted == 1 && other.lease.active() {
			return other
		}
	}
	return nil
}

// drain runs a rank whose calls all take as long, on one slot, until nobody
// waits, and returns the order in which they were served.
func drain(r *Rank, running *caller, took, now time.Duration, waiting ...[]*caller) (order []*caller) {
	for all := slices.Concat(waiting...); r.Waiting() > 0; {
		now += took
		running = running.next(r, now, all)
		order = append(order, running)
	}
	return order
}

// A caller with few calls does not wait behind the many of another.
func TestLightCallerGoesBeforeAHeavyOne(t *testing.T) {
	r, _ := newRank(t, 10_000, 1)
	m := knownMethod(r, 20*ms)
	heavy, light := r.Open("heavy", Terms{}), r.Open("light", Terms{})
	running := with(heavy, m, 0)
	running.acquire(t, r, 0, Granted)
	many := backlog(t, r, heavy, m, 1000, 0)
	few := backlog(t, r, light, m, 3, ms)
	order := drain(r, running, 20*ms, ms, many, few)
	for i, c := range few {
		if order[i] != c {
			t.Fatalf("call %d of the light caller was not served in its turn", i)
		}
	}
	if len(order) != 1003 {
		t.Errorf("%d calls were served", len(order))
	}
}

// Callers that all want more than there is share it by their weights.
func TestSharesFollowWeights(t *testing.T) {
	r, _ := newRank(t, 100_000, 1)
	m := knownMethod(r, 20*ms)
	accounts := []*Account{r.Open("one", Terms{}), r.Open("three", Terms{Weight: 3})}
	running := with(nil, m, 0)
	running.acquire(t, r, 0, Granted)
	calls := [][]*caller{
		backlog(t, r, accounts[0], m, 6000, 0),
		backlog(t, r, accounts[1], m, 6000, 0),
	}
	served := map[*Account]int{}
	for _, c := range drain(r, running, 20*ms, ms, calls...)[:4000] {
		served[c.Request.Account]++
	}
	if share := float64(served[accounts[1]]) / 4000; share < 0.72 || share > 0.78 {
		t.Errorf("the caller of weight 3 beside one of weight 1 got %.3f of the slot", share)
	}
}

// What counts is slot time, not the number of calls.
func TestLongCallsCostMore(t *testing.T) {
	r, _ := newRank(t, 100_000, 1)
	short, long := knownMethod(r, 10*ms), knownMethod(r, 100*ms)
	quick, slow := r.Open("quick", Terms{}), r.Open("slow", Terms{})
	running := with(nil, short, 0)
	running.acquire(t, r, 0, Granted)
	waiting := append(backlog(t, r, quick, short, 5000, 0), backlog(t, r, slow, long, 2000, 0)...)
	now, had := time.Duration(0), map[*Account]time.Duration{}
	for now < 60*time.Second {
		took := 10 * ms
		if running.Request.Method == long {
			took = 100 * ms
		}
		now += took
		had[running.Request.Account] += took
		running = running.next(r, now, waiting)
	}
	if share := float64(had[quick]) / float64(had[quick]+had[slow]); share < 0.45 || share > 0.55 {
		t.Errorf("the caller with short calls got %.3f of the slot time", share)
	}
}

// A refused call was not served: its caller is not charged for it.
func TestRefusalsAreNotCharged(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	a := r.Open("a", Terms{})
	r.Open("b", Terms{})
	m := knownMethod(r, time.Second)
	for i := range 5 {
		now := time.Duration(i) * time.Minute
		c := with(a, m, now)
		c.acquire(t, r, now, Granted)
		c.release(r, RefusedByWorker, now)
		r.Tick(now+time.Second, nil)
	}
	if a.use > float64(ms) || a.charged != 0 {
		t.Errorf("five refused calls cost %v", a.charged)
	}
}

// Calls above the rate and the number of one account are refused by name.
func TestTermsOfAnAccount(t *testing.T) {
	r, _ := newRank(t, 10, 5)
	a := r.Open("a", Terms{Rate: 10, Burst: 2, Concurrent: 3})
	var calls []*caller
	ask := func(now time.Duration) Reason {
		c := with(a, nil, now)
		lease, reply, reason := r.Acquire(&c.Ticket, c, now)
		if reply == Granted {
			c.lease = lease
			calls = append(calls, c)
		}
		return reason
	}
	for i, step := range []struct {
		at   time.Duration
		want Reason
	}{
		{0, NoReason}, {0, NoReason}, {0, RateLimited}, {99 * ms, RateLimited}, {100 * ms, NoReason},
		{time.Minute, TooManyCalls},
	} {
		if got := ask(step.at); got != step.want {
			t.Errorf("call %d: %v, want %v", i, got, step.want)
		}
	}
	calls[0].release(r, OK, time.Minute)
	if got := ask(time.Minute); got != NoReason {
		t.Errorf("after one has ended: %v", got)
	}
}

// R5: cancelled calls whose slots are held still count.
func TestGhostsCountAsCalls(t *testing.T) {
	r := New(Options{})
	r.SetReady(r.Add("worker", EndpointOptions{Slots: 5}), true, 0, nil)
	a := r.Open("a", Terms{Concurrent: 1})
	c, next := with(a, nil, 0), with(a, nil, 0)
	c.acquire(t, r, 0, Granted)
	c.release(r, Cancelled, ms)
	r.Close(a)
	if _, _, reason := r.Acquire(&next.Ticket, next, 2*ms); reason != TooManyCalls {
		t.Errorf("beside a ghost: %v", reason)
	}
	r.Tick(2*time.Second, nil)
	next.acquire(t, r, 2*time.Second, Granted)
	next.release(r, Cancelled, 2*time.Second+ms)
	r.SetReady(next.lease.Endpoint(), false, 3*time.Second, nil)
	r.SetReady(next.lease.Endpoint(), true, 3*time.Second, nil)
	if a.ghosts != 0 || r.Snapshot().Accounts != 0 {
		t.Errorf("%d ghosts, %d accounts", a.ghosts, r.Snapshot().Accounts)
	}
}

// An account goes when nobody needs it, and not before.
func TestAccountsGo(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	a := r.Open("a", Terms{})
	if r.Open("a", Terms{}) != a {
		t.Error("two accounts for one key")
	}
	c := with(a, nil, 0)
	c.acquire(t, r, 0, Granted)
	r.Close(a)
	r.Close(a)
	if r.Snapshot().Accounts != 1 {
		t.Error("the account of a call that runs is gone")
	}
	c.release(r, OK, ms)
	if n := r.Snapshot().Accounts; n != 0 {
		t.Errorf("%d accounts are left", n)
	}
	expectPanic(t, "closed once too often", func() { r.Close(a) })
}

// Who has to give up the only place in the queue is forgotten like others.
func TestAccountsGoWithAnEvictedCall(t *testing.T) {
	r := New(Options{QueueLength: 1, Lanes: []LaneOptions{{Name: "urgent", Priority: 1}}})
	a := r.Open("a", Terms{})
	c, urgent := with(a, nil, 0), newCaller(0)
	c.acquire(t, r, 0, Queued)
	r.Close(a)
	urgent.Request.Lane = 1
	urgent.acquire(t, r, 0, Queued)
	if n := r.Snapshot().Accounts; n != 0 {
		t.Errorf("%d accounts are left", n)
	}
}

// Accounts that are kept for their debts alone are bounded.
func TestDebtorsAreBounded(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	r.Open("other", Terms{})
	for i := range 3 * maxDebtors {
		a := r.Open(string(rune('a'+i%26))+time.Duration(i).String(), Terms{})
		a.shares[0].had = float64(time.Hour)
		r.Close(a)
	}
	if n := r.Snapshot().Accounts; n > maxDebtors+1 {
		t.Errorf("%d accounts are kept", n)
	}
	r.lanes[0].clock = float64(2 * time.Hour)
	for range maxDebtors { // each looks at two
		r.Close(r.Open("one more", Terms{}))
	}
	if n := r.Snapshot().Accounts; n > 1 {
		t.Errorf("%d accounts are kept although nobody owes anything", n)
	}
}
