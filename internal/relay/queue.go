package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/trace"
)

// replied takes the rank's reply.
func (c *call) replied(lease rank.Lease, reply rank.Reply, reason rank.Reason, now time.Duration) {
	switch reply {
	case rank.Granted:
		c.send(lease, now)
	case rank.Queued:
		c.wait(now)
	default:
		c.fail(endingFor(reason), now)
	}
}

// wait marks the call as queued in the rank.
func (c *call) wait(now time.Duration) {
	c.become(callQueued)
	c.awaited, c.joined = true, now
	if c.trace != nil {
		c.main.span = 1 + c.trace.Begin(trace.Queue, "", "", now)
	}
	if c.caller.local != nil {
		c.noteTaken()
	}
	c.count()
	c.setClock(now)
}

// Granted implements rank.Waiter: the grant is posted to the call's shard
// (R23). It may run on any goroutine.
func (c *call) Granted(l rank.Lease) {
	c.grant = l
	c.st.Post(c)
}

// Refused implements rank.Waiter, like Granted.
func (c *call) Refused(reason rank.Reason) {
	c.refused = reason
	c.st.Post(c)
}

// Run implements shard.Task: a grant or refusal of the rank has arrived.
func (c *call) Run(now time.Duration) {
	lease, reason := c.grant, c.refused
	c.grant, c.refused, c.awaited = rank.Lease{}, rank.NoReason, false
	c.leaveWaiting()
	switch {
	case c.state != callQueued: // it ended while the grant was on its way
		if lease.Valid() {
			c.st.release(lease, rank.NotSent, now)
		}
		c.settle()
	case reason != rank.NoReason:
		c.fail(endingFor(reason), now)
	default:
		c.waited += max(lease.At()-c.joined, 0)
		if c.trace != nil {
			c.trace.Finish(c.main.span-1, grpcwire.OK, "", now)
		}
		c.send(lease, now)
	}
}

// leaveQueue takes a waiting call out of the queue. If a grant is already on its way, Run
// gives it back.
func (c *call) leaveQueue(now time.Duration) {
	c.leaveCheck()
	if !c.state.waits() {
		return
	}
	c.leaveWaiting()
	if c.state != callQueued {
		return
	}
	c.waited += now - c.joined
	if c.awaited && c.st.relay.rank.Leave(&c.main.ticket) {
		c.awaited = false
	}
}

// onCancel returns what happens to the call's slot if it is cancelled: by the method's rule,
// or by Options.OnCancel.
func (c *call) onCancel() rank.OnCancel {
	if rule := c.head.Rule; rule != nil && rule.OnCancel != 0 {
		return rule.OnCancel
	}
	return c.st.relay.settings().OnCancel
}
