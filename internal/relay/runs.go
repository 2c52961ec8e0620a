package relay

import (
	"sync/atomic"
	"time"
)

// enoughRuns is how many runs must have been seen of a method before silence is
// judged by them.
const enoughRuns = 20

// runs is the longest run ever seen of a method's calls: from the grant of a
// slot to the end of the worker's answer, or of the worker. What the rank has
// learned fades within seconds; who decides about a worker's life must not
// forget so soon.
type runs struct{ longest atomic.Int64 } // nanoseconds

// ran notes a run. It is rarely the longest, so that the cores read the same
// memory and do not take it from each other.
func (r *runs) ran(d time.Duration) {
	for longest := r.longest.Load(); int64(d) > longest; longest = r.longest.Load() {
		if r.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// longestRun returns the longest run ever seen, 0 if there was none. Methods
// without a name have it in common.
func (m *method) longestRun(r *Relay) time.Duration {
	if m == nil {
		return time.Duration(r.unnamed.longest.Load())
	}
	return time.Duration(m.runs.longest.Load())
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

// recordRun learns from the time for which a finished call had a slot. One that
// was given up before the worker said anything is no run: it may have been lost
// in a worker that hangs. One that ended with its worker is, so that a method
// which takes longer than hang_timeout is given more time at its next call.
func (st *stand) recordRun(c *call) {
	if c.work.cut && !c.answered {
		return
	}
	if c.method == nil {
		st.relay.unnamed.ran(c.work.total)
		return
	}
	c.method.runs.ran(c.work.total)
}
