package relay

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Cut closes the endpoint like Down and ends the calls that still run there, because its
// process is about to end. A call moves if it provably has not started there (R4), or if
// its method's rule allows a retry and nothing was answered; neither needs the retry
// budget. All others are answered UNAVAILABLE `cabrank: worker draining`: at once, or if
// the caller has part of a message, at the end of that message, but after a second at
// the latest. Slots held for handlers of cancelled calls become free.
//
// The endpoint gets nothing until Up. Cut does not wait: Activity.InFlight is 0 when all
// calls are over.
func (r *Relay) Cut(e *Endpoint) {
	r.Down(e)
	r.each(func(st *shardState) { st.upstreamOf(e.slots).cut(st.Now()) })
	deliver(r.rank.EndPauses(e.slots, r.now(), nil))
}

// cut ends the calls and the connections of one shard there.
func (u *upstream) cut(now time.Duration) {
	u.cutOff = true
	for _, uc := range slices.Clone(u.conns) {
		for a := range uc.open(uc.attempts(nil)) {
			a.cut(now)
		}
		uc.retire()
	}
}

// cut takes the call from its worker, and moves it to another one if that is allowed.
func (a *attempt) cut(now time.Duration) {
	c, outcome := a.call, rank.Failed
	unseen := a.unsend()
	if unseen {
		outcome = rank.NotSent
	}
	switch {
	case c.state == callDetached:
		a.endDetached(outcome, now)
	case a.failInRace(outcome, now):
	case c.reflection && c.replayable(): // reflection only reads: it may run twice
		c.move(rank.NotSent, now)
	case unseen && c.replayable():
		c.requeue(rank.NotSent, now)
	case c.retry(retryDrained, 0, rank.Failed, now):
	default:
		c.endAfterMessage(endedDraining, now)
	}
}
