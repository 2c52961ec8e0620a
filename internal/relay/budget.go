package relay

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

// retryBudget bounds retries and hedges, so that they cannot multiply the load of
// workers in trouble: perSecond a second, and beyond that the share ratio of the calls
// of the last ten seconds.
//
// Concurrency: may be used from anywhere; its lock is a leaf.
type retryBudget struct {
	mu        sync.Mutex
	ratio     float64
	perSecond float64

	second  int64                   // the current one
	seconds [budgetWindow]oneSecond // by second modulo budgetWindow
	calls   uint64                  // sums of seconds
	spent   uint64

	tokens float64 // of perSecond, at most one second's worth and at least one
	filled time.Duration
}

type oneSecond struct{ calls, spent uint64 }

func newRetryBudget(o RetryBudget) retryBudget {
	return retryBudget{ratio: o.Ratio, perSecond: o.PerSecond, tokens: mostTokens(o.PerSecond)}
}

// setTerms changes the bounds. Attempts of the last ten seconds still count against the
// ratio; a new rate begins with a second's worth.
func (b *retryBudget) setTerms(o RetryBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.perSecond != o.PerSecond {
		b.tokens = mostTokens(o.PerSecond)
	}
	b.ratio, b.perSecond = o.Ratio, o.PerSecond
}

// mostTokens returns how many attempts may be made at once: a second's worth, at least
// one unless the rate is 0.
func mostTokens(perSecond float64) float64 {
	if perSecond == 0 {
		return 0
	}
	return max(perSecond, 1)
}

// add counts calls, each of them once however often it is sent.
func (b *retryBudget) add(calls uint64, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(calls, now)
}

// allows counts the calls that the shard has not reported yet, and reports whether one
// more attempt may be made.
func (b *retryBudget) allows(calls uint64, now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(calls, now)
	b.tokens = min(b.tokens+b.perSecond*(now-b.filled).Seconds(), mostTokens(b.perSecond))
	b.filled = now
	return b.tokens >= 1 || float64(b.spent+1) <= b.ratio*float64(b.calls)
}

// spend counts an attempt. Shards that ask at the same time may each make one too many.
func (b *retryBudget) spend(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(0, now).spent++
	b.spent++
	if b.tokens >= 1 {
		b.tokens--
	}
}

// count moves the window on to now and counts calls in its last second.
func (b *retryBudget) count(calls uint64, now time.Duration) *oneSecond {
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

// countCall counts a call for the budget.
func (st *shardState) countCall(now time.Duration) {
	if st.uncounted++; st.uncounted >= countBatch {
		st.relay.retryBudget.add(st.uncounted, now)
		st.uncounted = 0
	}
}

// mayTry reports whether the budget allows another attempt. spend counts the attempt.
func (st *shardState) mayTry(now time.Duration) bool {
	calls := st.uncounted
	st.uncounted = 0
	return st.relay.retryBudget.allows(calls, now)
}
