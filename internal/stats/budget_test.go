package stats

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// takes makes all the attempts that the budget allows at now, and counts them.
func (b *Budget) takes(now time.Duration) (n int) {
	for n < 1e6 && b.allows(0, now) {
		b.Spend(now)
		n++
	}
	return n
}

// There are perSecond attempts a second, and beyond them the share ratio of the
// calls of the last ten seconds.
func TestRetryBudget(t *testing.T) {
	b := NewBudget(RetryBudget{Ratio: 0.1, PerSecond: 10})
	for second := range 12 {
		if n := b.takes(time.Duration(second)*time.Second + 999*time.Millisecond); n != 10 {
			t.Errorf("second %d without a call: %d attempts, want 10", second, n)
		}
	}
	const later = 100 * time.Second // all of that is forgotten
	b.allows(1000, later)
	if n := b.takes(later); n != 100 {
		t.Errorf("after 1000 calls: %d attempts, want 100", n)
	}
	if n := b.takes(later + 9*time.Second); n != 10 {
		t.Errorf("9 s later: %d attempts, want the 10 of that second", n)
	}
	b.allows(2000, later+10*time.Second)
	if n := b.takes(later + 10*time.Second); n != 190 {
		t.Errorf("10 s later, after 2000 calls: %d attempts, want 200 less the 10 of the second before", n)
	}
	if n := b.takes(later + time.Hour); n != 10 {
		t.Errorf("an hour later: %d attempts, want 10", n)
	}
}

// Less than one a second is one now and then, and nothing is nothing.
func TestSmallRetryBudget(t *testing.T) {
	b := NewBudget(RetryBudget{PerSecond: 0.5})
	b.allows(1e6, 0)
	for second, want := range []int{1, 0, 1, 0, 1} {
		if n := b.takes(time.Duration(second) * time.Second); n != want {
			t.Errorf("second %d: %d attempts, want %d", second, n, want)
		}
	}
	none := NewBudget(RetryBudget{})
	none.allows(1e6, time.Second)
	testkit.Equal(t, none.takes(time.Hour), 0, "attempts without a budget")
}

// The calls that a shard has not told of yet count at the moment of its retry,
// so that a quiet shard's share is not forgotten.
func TestCallsCountForBudget(t *testing.T) {
	for calls, want := range map[int]int{0: 0, 50: 5, 127: 12, 128: 12, 1000: 100} {
		share := BudgetShare{Budget: NewBudget(RetryBudget{Ratio: 0.1})}
		for range calls {
			share.Count(0)
		}
		got := 0
		for share.Allows(0) {
			share.Spend(0)
			got++
		}
		testkit.Want(t, got == want, "%d calls: %d attempts, want %d", calls, got, want)
	}
}
