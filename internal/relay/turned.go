package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// A call is turned away if its worker ends the connection, or sends GOAWAY, without a look at
// the call. Either the worker is bad and turns all calls away, or the call is bad and no
// worker takes it. So both slow down: a call that is turned away repeatedly waits longer
// before each move, and an endpoint that answers no other call gets calls more rarely.

// quickMoves is how often a call moves without a wait. The later waits add up to more than
// health.TurnedFor, so that no call fails before a bad worker is known.
const quickMoves = 1

// turnsAway notes that the endpoint ended a connection with calls that it had not looked at.
// A bad endpoint is treated like an unreachable one: it gets a call only after a pause.
func (u *upstream) turnsAway(now time.Duration) {
	u.turned.Add(u.endpoint.answered(), now)
	if u.turned.Last() != 0 {
		u.dials.failed(now, u.st.relay.settings().Random())
	}
}

// turnedAway moves a call that its worker has not seen. Pauses between dials and the wait for
// a slot bound the moves if workers cannot be reached; maxRefusals bounds them if reached
// workers turn the call away (R4).
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

// pauseBeforeMove makes the call wait before it moves, twice as long each time.
func (c *call) pauseBeforeMove(now time.Duration) {
	c.st.tally.events[eventMoved]++
	c.handBack(rank.NotSent, now)
	c.pausedUnseen = true
	c.pauseUntil(now+spread(movePause(c.turned), 0.2, c.st.relay.settings().Random()), now)
}

// movePause returns the wait of a call that was turned away n times, more than quickMoves
// and at most maxRefusals.
func movePause(n int) time.Duration {
	return min(minDialPause<<(n-quickMoves-1), maxDialPause)
}
