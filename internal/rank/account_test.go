package rank

import (
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
	if due := r.lanes[0].due(); a.shares[0].had > due || b.shares[0].had > due || waiting[2].granted != 1 {
		t.Errorf("who waited had %v, who had 100 ms of 50 slots %v, of %v", b.shares[0].had, a.shares[0].had, due)
	}
}
