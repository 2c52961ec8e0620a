package relay

import (
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// A call joins the rank when there is something for a worker to do (R9): when its
// request has ended, when its first message is whole, or when as much of that is
// here as the caller can be sure to send before it has a slot. How long a call waits for that
// depends on what it has shown; see docs/decisions/013-slow-callers.md.
const (
	// gatherFor is the patience with a caller that has sent nothing but HEADERS:
	// some workers speak first.
	gatherFor = 5 * time.Millisecond
	// gatherLonger is the same for a method whose workers are known not to. It
	// bounds what a mistake about that costs.
	gatherLonger = time.Second
	// enoughAnswers is how many answers teach that: each came after its request,
	// and none before.
	enoughAnswers = 20
)

// gather has a call wait for the beginning of its request.
func (c *call) gather(now time.Duration) {
	if c.gathered() {
		c.enter(now)
		return
	}
	c.state, c.patience = callGathering, now+gatherFor
	// Most calls have their message right behind: no clock is wound for them.
	if conn := c.down.Conn(); conn == nil || !conn.Follows(&c.down) {
		c.count()
		c.setClock(now)
	}
}

// gathered reports whether there is enough of the request to begin with.
func (c *call) gathered() bool {
	if c.check != nil { // whether it may go on is not known yet
		return false
	}
	// Half a window: the rest of it may be owed for padding, and would not come.
	if c.reqEnd || len(c.req) >= c.down.Window()/2 {
		return true
	}
	if !c.grpc {
		return false
	}
	prefix, err := grpcwire.ParsePrefix(c.req)
	return err == nil && len(c.req)-grpcwire.PrefixLen >= int(prefix.Length)
}

// gatherMore takes bytes of a request that is still waited for.
func (c *call) gatherMore(now time.Duration) {
	st, cc := c.st, c.caller
	if c.gathered() {
		c.enter(now)
	} else {
		c.count()
		if !c.clock.Set() && c.patience != 0 {
			c.setClock(now)
		}
	}
	st.shed(cc, now)
}

// patienceEnds decides about a call that has waited for its request for as long as
// it was to.
//
// The beginning of a message is of no use to any worker, so a call that has sent
// one waits for the rest of it: a caller that sends byte by byte must not hold a
// worker meanwhile. It is given up if no byte has come for stall_timeout.
func (c *call) patienceEnds(now time.Duration) {
	limit := c.st.relay.settings().StallTimeout
	switch {
	case c.grpc && len(c.req) > 0 && c.idle.looks > 0:
		c.fail(endedStalled, now)
		return
	case c.grpc && len(c.req) > 0:
		c.idle.looks = 1 // bytes take that back
		if c.patience = 0; limit > 0 {
			c.patience = now + limit
		}
	case now < c.started+gatherLonger && c.method.callerFirst():
		c.patience = c.started + gatherLonger
	default:
		c.enter(now)
		return
	}
	c.setClock(now)
}

// order is what is known of who speaks first in calls of one method.
//
// Concurrency: all shards share it. Once enough is known it is only read.
type order struct {
	worker atomic.Bool  // one has begun an answer before the request had
	caller atomic.Int32 // answers that came after the request had begun; not counted further than enoughAnswers
}

// callerFirst reports whether workers that serve the method are known to answer
// when they have a message, and never before.
func (m *method) callerFirst() bool {
	return m != nil && !m.order.worker.Load() && m.order.caller.Load() >= enoughAnswers
}

// silent reports whether nothing but HEADERS has come of a request.
func (c *call) silent() bool { return !c.reqEnd && c.reqBase == 0 && len(c.req) == 0 }

// noteOrder keeps who spoke first, when an answer begins that is more than a
// status: what refuses a call by its HEADERS says nothing about the method.
func (c *call) noteOrder() {
	if !c.silent() {
		return
	}
	c.workerFirst = true
	if c.method != nil { // others are to know before this call has ended
		c.method.order.worker.Store(true)
	}
}

// learnOrder adds a call that has ended to what is known of its method.
func (c *call) learnOrder() {
	switch m := c.method; {
	case m == nil:
	case c.workerFirst:
		m.order.worker.Store(true)
	case c.gotData && m.order.caller.Load() < enoughAnswers:
		m.order.caller.Add(1)
	}
}
