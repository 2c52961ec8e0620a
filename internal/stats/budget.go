package stats

import (
	"sync"
	"time"
)

const (
	// budgetWindow is how many seconds a budget looks back.
	budgetWindow = 10
	// countBatch is how many calls a shard counts before it adds them to the budget,
	// which all shards share.
	countBatch = 128
)

// RetryBudget bounds what retries and hedges add to the load of workers:
// PerSecond of them a second, and beyond that the share Ratio of the calls of the
// last ten seconds.
type RetryBudget struct {
	Ratio     float64
	PerSecond float64
}

// Budget holds retries and hedges to a RetryBudget, so that they cannot multiply the load of
// workers in trouble.
//
// Concurrency: may be used from anywhere; its lock is a leaf.
type Budget struct {
	mu    sync.Mutex
	terms RetryBudget

	second  int64                   // the current one
	seconds [budgetWindow]oneSecond // by second modulo budgetWindow
	calls   uint64                  // sums of seconds
	spent   uint64

	tokens float64 // of PerSecond, at most one second's worth and at least one
	filled time.Duration
}

type oneSecond struct{ calls, spent uint64 }

// NewBudget returns a budget of which nothing is spent.
func NewBudget(o RetryBudget) *Budget { return &Budget{terms: o, tokens: mostTokens(o.PerSecond)} }

// SetTerms changes the bounds. Attempts of the last ten seconds still count against the
// ratio; a new rate begins with a second's worth.
func (b *Budget) SetTerms(o RetryBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terms.PerSecond != o.PerSecond {
		b.tokens = mostTokens(o.PerSecond)
	}
	b.terms = o
}

// mostTokens returns how many attempts may be made at once: a second's worth, at least
// one unless the rate is 0.
func mostTokens(perSecond float64) float64 {
	if perSecond == 0 {
		return 0
	}
	return max(perSecond, 1)
}

// allows counts calls, each of them once however often it is sent, and reports whether one
// more attempt may be made.
func (b *Budget) allows(calls uint64, now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(calls, now)
	b.tokens = min(b.tokens+b.terms.PerSecond*(now-b.filled).Seconds(), mostTokens(b.terms.PerSecond))
	b.filled = now
	return b.tokens >= 1 || float64(b.spent+1) <= b.terms.Ratio*float64(b.calls)
}

// Spend counts an attempt. Shards that ask at the same time may each make one too many.
func (b *Budget) Spend(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(0, now).spent++
	b.spent++
	if b.tokens >= 1 {
		b.tokens--
	}
}

// count moves the window on to now and counts calls in its last second.
func (b *Budget) count(calls uint64, now time.Duration) *oneSecond {
	for to := int64(now / time.Second); b.second < to; {
		b.second = max(b.second, to-budgetWindow) + 1
		past := &b.seconds[b.second%budgetWindow]
		b.calls -= past.calls
		b.spent -= past.spent
		*past = oneSecond{}
	}
	this := &b.seconds[b.second%budgetWindow]
	this.calls += calls
	b.calls += calls
	return this
}

// BudgetShare counts the calls of one shard for a budget that all shards share.
//
// Concurrency: guarded by the lock of its shard.
type BudgetShare struct {
	*Budget
	uncounted uint64 // calls not yet added to the budget
}

// Count counts a call.
func (s *BudgetShare) Count(now time.Duration) {
	if s.uncounted++; s.uncounted >= countBatch {
		s.Allows(now)
	}
}

// Allows reports whether the budget allows another attempt. Spend counts the attempt.
func (s *BudgetShare) Allows(now time.Duration) bool {
	calls := s.uncounted
	s.uncounted = 0
	return s.allows(calls, now)
}
