package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/health"
)

// enoughRuns is how many runs must have been seen of a method before silence is
// judged by them.
const enoughRuns = 20

// runsOf is what was seen of the runs of a method, nil for one without a name: those have
// it in common.
func (r *Relay) runsOf(m *method) *health.Runs {
	if m == nil {
		return &r.unnamedRuns
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
func (st *shardState) recordRun(c *call, now time.Duration) {
	r := st.relay.runsOf(c.method)
	switch timeout := st.relay.settings().HangTimeout; {
	case c.work.lost && timeout > 0 && c.work.total >= timeout:
		r.Lost(c.work.total, now)
	case c.answered && !c.endedByClock():
		r.Answered(c.work.first)
	}
}

// endedByClock reports an answer that is the deadline's: a worker's library makes it
// by itself, and the handler goes on.
func (a *attempt) endedByClock() bool {
	return a.code == grpcwire.DeadlineExceeded && a.call.late()
}
