package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// A call that its worker provably has not started moves to another one (R1, R4): the worker
// refused its stream, or never saw it. It gets a free slot at once, or goes back to the head of
// the queue.
//
// A call is turned away if its worker ends the connection, or sends GOAWAY, without a look at
// the call. Either the worker is bad and turns all calls away, or the call is bad and no
// worker takes it. So both slow down: a call that is turned away repeatedly waits longer
// before each move, and an endpoint that answers no other call gets calls more rarely.

const (
	// maxRefusals is how often a refused call returns to the queue (R1).
	maxRefusals = 8
	// quickMoves is how often a call moves without a wait. The later waits add up to more than
	// health.TurnedFor, so that no call fails before a bad worker is known.
	quickMoves = 1
)

// requeue moves the call. Outcome NotSent is for a call that its worker has not looked at:
// the rank learns nothing from it. Otherwise a worker whose connections end would seem to have
// no threads.
func (c *call) requeue(outcome rank.Outcome, now time.Duration) {
	c.st.tally.events[eventMoved]++
	if lease, granted := c.move(outcome, now); granted {
		c.send(lease, now)
	}
}

// move takes the call from its worker back to the rank. If it reports false, the call
// waits or has ended.
func (c *call) move(outcome rank.Outcome, now time.Duration) (next rank.Lease, granted bool) {
	c.handBack(outcome, now)
	if c.reflection {
		c.reflection = false
		c.startReflection(now) // or it waits like any other call
		return next, false
	}
	return c.rejoin(now)
}

// handBack takes a call that has not started from its worker.
func (c *call) handBack(outcome rank.Outcome, now time.Duration) {
	from := c.main.lease.Endpoint()
	c.extendWait(now)
	c.main.leaveStream()
	c.main.up.Clear()
	c.main.clearAnswer()
	if !c.reflection {
		c.releaseLease(outcome, now)
		c.main.ticket.Request.Avoid = from
	}
	c.after = afterMove
	c.become(callNew)
}

// rejoin brings such a call back to the rank, at the head of the queue.
func (c *call) rejoin(now time.Duration) (next rank.Lease, granted bool) {
	if now >= c.waitUntil {
		c.fail(c.st.relay.waitedTooLong(), now)
		return next, false
	}
	c.main.ticket.Request.Until = c.waitUntil
	lease, reply := c.st.relay.rank.Rejoin(&c.main.ticket, c, now)
	switch reply {
	case rank.Granted:
		return lease, true
	case rank.Queued:
		c.wait(now)
	default:
		c.fail(endedDeadlineQueued, now)
	}
	return next, false
}

// extendWait does not count the time that a worker held the call without looking at it as
// waiting for a slot: otherwise a late refusal would fail the call instead of moving it.
// Time before the worker's SETTINGS counts. The number of extensions is bounded, and so
// is the wait (R10).
func (c *call) extendWait(now time.Duration) {
	if uc := c.main.via; uc == nil || !c.main.lease.Valid() || !uc.link.Conn.Greeted() || c.extended == maxRefusals {
		return
	}
	c.extended++
	c.waitUntil += max(now-c.main.lease.At(), 0)
}

// refusedStream moves a call whose stream the worker has refused.
func (c *call) refusedStream(now time.Duration) {
	if c.refusals++; c.refusals > maxRefusals {
		c.fail(endedNoSlot, now)
		return
	}
	c.st.tally.events[eventRefused]++
	c.requeue(rank.RefusedByWorker, now)
}

// turnedAway moves a call that its worker has not seen. Pauses between dials and the wait for
// a slot bound the moves if workers cannot be reached; maxRefusals bounds them if reached
// workers turn the call away (R4).
func (c *call) turnedAway(now time.Duration) {
	if c.main.via != nil && c.main.via.link.Conn.Greeted() {
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
	pause := spread(movePause(c.turned), 0.2, c.st.relay.settings().Random())
	c.pause(callMoving, now+pause, now)
}

// movePause returns the wait of a call that was turned away n times, more than quickMoves
// and at most maxRefusals.
func movePause(n int) time.Duration {
	return min(minDialPause<<(n-quickMoves-1), maxDialPause)
}

// turnsAway notes that the endpoint ended a connection with calls that it had not looked at.
// A bad endpoint is treated like an unreachable one: it gets a call only after a pause.
func (u *upstream) turnsAway(now time.Duration) {
	u.turned.Add(u.endpoint.answered(), now)
	if u.turned.Last() != 0 {
		u.dials.failed(now, u.st.relay.settings().Random())
	}
}
