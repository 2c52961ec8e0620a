package relay

import (
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// enoughRuns is how many runs must have been seen of a method before silence is
// judged by them.
const enoughRuns = 20

// runs is for how long calls of a method were without an answer: from the grant of
// a slot to the first byte. What the rank has learned fades within seconds; who
// decides about a worker's life must not forget so soon.
//
// A call that was cut teaches nothing: it may have been lost in a worker that hangs.
// One that was lost with its worker after Options.HangTimeout teaches once. If that
// method just takes so long its next call comes to its end; if that one is lost,
// too, the method hangs.
type runs struct {
	longest atomic.Int64 // nanoseconds
	lost    atomic.Int64 // the same of the one that was lost; wasted if that did not help
	lostAt  atomic.Int64 // when; calls that began before learn nothing by it
}

// wasted stands in runs.lost for a lesson that was of no use.
const wasted = -1

// ran notes a time. It is rarely the longest, so that the cores read the same
// memory and do not take it from each other.
func (r *runs) ran(d time.Duration) {
	for longest := r.longest.Load(); int64(d) > longest; longest = r.longest.Load() {
		if r.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// wasLost notes a call that was lost with its worker at now, after more than the
// hang timeout.
func (r *runs) wasLost(d, now time.Duration) {
	if r.lost.CompareAndSwap(0, int64(d)) {
		r.lostAt.Store(int64(now))
	} else if int64(now-d) >= r.lostAt.Load() {
		r.lost.Store(wasted)
	}
}

// before returns what counts for a call that began at an instant.
func (r *runs) before(began time.Duration) time.Duration {
	longest := r.longest.Load()
	if int64(began) >= r.lostAt.Load() {
		longest = max(longest, r.lost.Load())
	}
	return time.Duration(longest)
}

// longestRun returns the longest time ever seen until an answer began, for a call
// that itself began at an instant; 0 if there was none. Methods without a name have
// it in common.
func (m *method) longestRun(r *Relay, began time.Duration) time.Duration {
	return m.runsOf(r).before(began)
}

func (m *method) runsOf(r *Relay) *runs {
	if m == nil {
		return &r.unnamed
	}
	return &m.runs
}

// usualRun returns how long the method's runs take at most these days, 0 if
// that is not known.
func (m *method) usualRun() time.Duration {
	if m == nil {
		return 0
	}
	learned := m.inRank.Estimate()
	if learned.Samples < enoughRuns {
		return 0
	}
	return learned.Longest
}

// recordRun learns from a finished call that had a slot.
func (st *stand) recordRun(c *call, now time.Duration) {
	r := c.method.runsOf(st.relay)
	switch timeout := st.relay.settings().HangTimeout; {
	case c.work.lost && timeout > 0 && c.work.total >= timeout:
		r.wasLost(c.work.total, now)
	case c.answered && !c.endedByClock():
		r.ran(c.work.first)
	}
}

// endedByClock reports an answer that is the deadline's: a worker's library makes it
// by itself, and the handler goes on.
func (a *attempt) endedByClock() bool {
	return a.code == grpcwire.DeadlineExceeded && a.call.late()
}
