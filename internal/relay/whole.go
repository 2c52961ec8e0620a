package relay

import "time"

// messageTime is how long a call that Cabrank ends may go on to complete a message that its
// caller has in part.
const messageTime = time.Second

// trailersTime is how long the call then waits for the worker's own trailers.
const trailersTime = 20 * time.Millisecond

// endAfterMessage ends a call with Cabrank's own answer, but not in the middle of a message:
// a message that the caller has in part is completed first, within messageTime. Callers take
// trailers after half a message for a protocol error and do not read them (R13).
func (c *call) endAfterMessage(why ending, now time.Duration) {
	if c.state != callRunning || !c.inMessage() {
		c.fail(why, now)
		return
	}
	if c.endAt == 0 {
		c.endReason, c.endAt = why, now+messageTime
		c.setClock(now)
	}
}

// messagePassed is called after bytes of such a call. If the message is complete and nothing
// follows, it may be the only one, with its trailers under way.
func (c *call) messagePassed(more bool, now time.Duration) {
	switch {
	case c.inMessage():
	case more:
		c.fail(c.endReason, now)
	default:
		c.endAt = min(c.endAt, now+trailersTime)
		c.setClock(now)
	}
}

// inMessage reports whether the caller has part of a message whose end has not come here.
func (c *call) inMessage() bool { return c.boundary.Begun() > len(c.resp)-c.respSent }

// dropPartialMessage drops the beginning of a message whose end will not come, if the caller
// has none of it.
func (c *call) dropPartialMessage() {
	part := c.boundary.Begun()
	if part == 0 || c.inMessage() {
		return
	}
	c.creditWorker(part)
	c.resp = c.resp[:len(c.resp)-part]
	if c.respSent == len(c.resp) {
		c.dropAnswer()
	}
}

// keepsAnswer reports whether the caller still gets what the worker had answered before this
// ending: not if the caller caused it, by its deadline or by not reading.
func keepsAnswer(why ending) bool {
	switch why {
	case endedDeadline, endedReflectionIdle, endedStalled:
		return false
	default:
		return true
	}
}
