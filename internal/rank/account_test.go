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
