package relay

import "time"

// messageTime bounds for how long a call that Cabrank ends goes on for the sake of
// the message that its caller has got the beginning of.
const messageTime = time.Second

// trailersTime is how long it waits for the worker's own trailers behind that.
const trailersTime = 20 * time.Millisecond

// endAfterMessage ends a call with an answer of cabrank's own, but not in the middle of a
// message: what the caller has a part of comes to its end first, if it does so
// within messageTime. A caller takes trailers behind half a message for a fault of
// the protocol, and never looks at what they say (R13).
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

// messagePassed is told of bytes of such a call. If the message is whole and nothing
// has come behind it, it may be the only one: then its trailers are under way.
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

// inMessage reports whether the caller has been sent the beginning of a message
// whose end has not come here.
func (c *call) inMessage() bool { return c.boundary.Begun() > len(c.resp)-c.respSent }

// dropPartialMessage gives up the beginning of a message whose end will not come, if the
// caller has seen nothing of it.
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

// keepsAnswer reports whether what the worker had answered before its call ended so
// is still the caller's. It is not where the caller has brought the end about, by
// its deadline or by not reading.
func keepsAnswer(why ending) bool {
	switch why {
	case endedDeadline, endedReflectionIdle, endedStalled:
		return false
	default:
		return true
	}
}
