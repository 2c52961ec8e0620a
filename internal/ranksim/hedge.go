package ranksim

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// hedgeSamples is how many runs of a method must have been seen, as in package
// relay.
const hedgeSamples = 20

// hedgeAfter returns how long a call runs before a second attempt may start; 0 means that
// it has no second attempt.
func (s *simulation) hedgeAfter(v *visit) time.Duration {
	if !s.Hedge || v.first.run.worker.OnCancel == rank.Finish {
		return 0 // Finish: the loser could not be cancelled
	}
	if s.HedgeAfter > 0 {
		return s.HedgeAfter
	}
	if e := v.first.ticket.Request.Method.Estimate(); e.Samples >= hedgeSamples {
		return e.P95
	}
	return 0
}

// tryAgain starts a second attempt of a call that takes long, if a slot is free for which
// no call waits.
func (v *visit) tryAgain() {
	s := v.sim
	v.hedgeAt = 0
	v.hedge.ticket.Request = v.first.ticket.Request
	v.hedge.ticket.Request.Avoid = v.first.lease.Endpoint()
	lease, ok := s.rank.AcquireFree(&v.hedge.ticket, s.now)
	if !ok {
		return
	}
	if !v.hedge.start(lease) {
		v.hedge.release(rank.RefusedByWorker)
		return
	}
	s.r.Records[v.call].Hedged = true
}
