package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// leaveWorker ends the worker's part in the call: it cancels an open stream and gives the
// slot back, unless the worker may finish (detach).
func (c *call) leaveWorker(outcome rank.Outcome, now time.Duration) {
	a := c.main
	if c.hedge != nil {
		c.dropHedge(rank.Cancelled, now)
	}
	if c.state == callDetached {
		c.st.StopTimer(&a.hold)
	}
	switch {
	case (outcome == rank.Cancelled || outcome == rank.Failed) && (a.via == nil || a.unsend()): // it may not have been written at all
		outcome = rank.NotSent // the worker had no part in the call
	case outcome == rank.Cancelled && c.mayFinish():
		c.detach(now)
		return
	}
	a.leaveStream()
	c.releaseLease(outcome, now)
	c.become(callOver)
	c.dropRequest()
}

// releaseLease gives back the call's slot, or its place among reflection calls.
func (c *call) releaseLease(outcome rank.Outcome, now time.Duration) {
	c.main.freeSlot(outcome, now)
	if c.reflection {
		c.reflection = false
		c.st.relay.reflections.Add(-1)
	}
}

// release gives the slot back to the rank and posts the resulting grants to their shards;
// the inbox is a leaf lock (R23).
func (st *shardState) release(l rank.Lease, outcome rank.Outcome, now time.Duration) {
	until := st.upstreamOf(l.Endpoint()).dials.until // usually long past
	switch outcome {
	case rank.RefusedByWorker, rank.Lost, rank.NotSent:
		if until > now { // the endpoint could not be reached
			outcome = rank.NotSent
		}
	default:
		until = now
	}
	st.grants = st.relay.rank.ReleaseAt(l, outcome, until, now, st.grants[:0])
	deliver(st.grants)
}

// settle recycles the call once nothing refers to it.
func (c *call) settle() {
	if c.ended && !c.awaited && !c.down.Open() && !c.main.up.Open() && !c.main.lease.Valid() {
		if c.caller != nil {
			c.caller.callEnded()
		}
		c.st.recycle(c)
	}
}

// reset frees the call's buffers and sets its fields to zero.
func (c *call) reset() {
	pool := c.st.Pool()
	if c.head != nil {
		c.st.releaseHead(c.head)
	}
	c.node.Leave()
	c.countHeld(0)
	if c.ahead > 0 {
		c.repay(c.ahead)
	}
	pool.Put(c.req)
	pool.Put(c.resp)
	pool.Put(c.respTail)
	c.down.Clear()
	c.main.clear()
	c.callFields = callFields{}
}
