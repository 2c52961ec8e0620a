package ranksim

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// hedgeAfter returns for how long a call runs before a second attempt may
// start; 0 means that none does.
func (s *simulation) hedgeAfter(v *visit) time.Duration {
	if !s.Hedge {
		return 0
	}
	if s.HedgeAfter > 0 {
		return s.HedgeAfter
	}
	return v.first.ticket.Request.Method.Estimate().P95
}

// tryAgain starts a second attempt of a call that takes long, if a slot is free
// that nobody wants.
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
