package relay

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// Cut closes the endpoint like Down and ends what still runs there, for its
// process is about to end. Calls that have provably not started there (R4), and
// those that may be tried again by their method's rule and have not been
// answered, move; neither waits for the retry budget. The others are answered
// UNAVAILABLE `cabrank: worker draining`: at once, or if the caller has the
// beginning of a message when that is whole, but after a second at the latest.
// Slots that wait for handlers of calls whose callers have gone are free.
//
// Nothing is sent there until Up. It waits for nothing: Activity.InFlight is 0
// when all of it is over.
func (r *Relay) Cut(e *Endpoint) {
	r.Down(e)
	r.each(func(st *stand) { st.upstreamOf(e.slots).cut(st.Now()) })
	deliver(r.rank.EndPauses(e.slots, r.now(), nil))
}

// cut ends the calls that one shard has there, and the connections with them.
func (u *upstream) cut(now time.Duration) {
	u.cutOff = true
	for _, uc := range slices.Clone(u.conns) {
		var open []*attempt
		uc.link.Conn.Each(func(s *h2.Stream) { open = append(open, s.Owner.(*attempt)) })
		for _, a := range open {
			if a.up.Conn() == uc.link.Conn { // else what came before has ended it
				a.cut(now)
			}
		}
		uc.retire()
	}
}

// cut takes the call from its worker, and brings it to another one if it may
// run there.
func (a *attempt) cut(now time.Duration) {
	c, outcome := a.call, rank.Failed
	unseen := a.unsend()
	if unseen {
		outcome = rank.NotSent
	}
	switch {
	case a.unheard:
		a.endUnheard(outcome, now)
	case a.loses(outcome, now):
	case c.aside && c.replayable(): // it only reads, so that it may be seen twice
		c.moveAside(now)
	case unseen && c.replayable():
		c.again(rank.NotSent, now)
	case c.retryDrained(now):
	default:
		c.endWhole(endedDraining, now)
	}
}
