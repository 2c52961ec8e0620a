package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/health"
)

// enoughRuns is how many runs of a method must be known before silence is judged by them.
const enoughRuns = 20

// runsOf returns the record of a method's runs. Methods without a name (nil) share one.
func (r *Relay) runsOf(m *method) *health.Runs {
	if m == nil {
		return &r.unnamedRuns
	}
	return &m.runs
}

// usualRun returns the longest recent run of the method, 0 if too few are known.
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
func (st *shardState) recordRun(c *call, now time.Duration) {
	r := st.relay.runsOf(c.method)
	switch timeout := st.relay.settings().HangTimeout; {
	case c.work.lost && timeout > 0 && c.work.total >= timeout:
		r.Lost(c.work.total, now)
	case c.answered && !c.endedByClock():
		r.Answered(c.work.first)
	}
}

// endedByClock reports whether the worker's library ended the call at its deadline: the
// handler may still run.
func (a *attempt) endedByClock() bool {
	return a.code == grpcwire.DeadlineExceeded && a.call.late()
}
