package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// A call is turned away if its worker ends the connection, or says GOAWAY, without a
// look at the call. It may be the worker's fault, which would do so with any call, or
// the call's, which no worker takes. So both become slower, each for itself: a call
// that is turned away again and again waits longer and longer before it moves on, and
// an endpoint that answers nobody else meanwhile gets a call more and more rarely.

// quickMoves is how often a call moves at once. All waits behind them together are longer
// than health.TurnedFor: no call fails at a bad worker that is not known yet.
const quickMoves = 1

// turnsAway notes that the endpoint ends a connection with calls on it that it has
// not looked at. One that is bad is as good as one that cannot be reached: it gets a
// call only after a pause.
func (u *upstream) turnsAway(now time.Duration) {
	u.turned.Add(u.endpoint.answered(), now)
	if u.turned.Last() != 0 {
		u.dials.failed(now, u.st.relay.settings().Random())
	}
}

// turnedAway moves a call that its worker has not seen. That a worker could not be
// reached has a bound in time, by the pauses between two dials and the wait for a
// slot; a call that was brought to workers and turned away again and again is a bad
// one, or they are (R4).
func (c *call) turnedAway(now time.Duration) {
	if c.via != nil && c.via.link.Conn.Greeted() {
		if c.turned++; c.turned > maxRefusals {
			c.fail(endedBroken, now)
			return
		}
		if c.turned > quickMoves && !c.reflection {
			c.pauseBeforeMove(now)
			return
		}
	}
	c.requeue(rank.NotSent, now)
}

// pauseBeforeMove has the call wait before it moves, twice as long each time.
func (c *call) pauseBeforeMove(now time.Duration) {
	c.st.stats.moved++
	c.handBack(rank.NotSent, now)
	c.pausedUnseen = true
	c.pauseUntil(now+spread(movePause(c.turned), 0.2, c.st.relay.settings().Random()), now)
}

// movePause is how long a call rests that was turned away n times, more than
// quickMoves and no more than maxRefusals.
func movePause(n int) time.Duration {
	return min(minDialPause<<(n-quickMoves-1), maxDialPause)
}
