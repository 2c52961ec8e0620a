package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// A call joins the rank when a worker would have something to do (R9): its request has
// ended, its first message is complete, or half a window of it is here. How long a call
// waits for that depends on its bytes so far and on its method; see
// docs/decisions/013-slow-callers.md.
const (
	// gatherFor is how long a call with nothing but HEADERS waits: some workers speak
	// first.
	gatherFor = 5 * time.Millisecond
	// gatherLonger is the same for methods whose workers never spoke first. It bounds the
	// cost of a wrong guess.
	gatherLonger = time.Second
)

// gathered reports whether enough of the request is here to join the rank.
func (c *call) gathered() bool {
	if c.check != nil { // its token is not checked yet
		return false
	}
	// Half a window: padding may use up the rest.
	if c.reqEnd || len(c.req) >= c.down.Window()/2 {
		return true
	}
	if !c.grpc {
		return false
	}
	prefix, err := grpcwire.ParsePrefix(c.req)
	return err == nil && len(c.req)-grpcwire.PrefixLen >= int(prefix.Length)
}

// gatherMore takes bytes of the request while the call gathers.
func (c *call) gatherMore(now time.Duration) {
	st, cc := c.st, c.caller
	if c.gathered() {
		c.acquire(now)
	} else {
		c.count()
		if !c.clock.Set() && c.patience != 0 {
			c.setClock(now)
		}
	}
	st.shed(cc, now)
}

// patienceEnds decides what to do with a call whose wait for its request is over.
//
// No worker can use the beginning of a message, so a call with part of a message waits on:
// a caller that sends byte by byte must not hold a worker meanwhile. The call fails if no
// byte comes for stall_timeout.
func (c *call) patienceEnds(now time.Duration) {
	limit := c.st.relay.settings().StallTimeout
	switch {
	case c.grpc && len(c.req) > 0 && c.idle.looks > 0:
		c.fail(endedStalled, now)
		return
	case c.grpc && len(c.req) > 0:
		c.idle.looks = 1 // the next byte resets it
		if c.patience = 0; limit > 0 {
			c.patience = now + limit
		}
	case now < c.started+gatherLonger && c.method.CallerFirst():
		c.patience = c.started + gatherLonger
	default:
		c.acquire(now)
		return
	}
	c.setClock(now)
}

// silent reports whether only HEADERS of the request have come.
func (c *call) silent() bool { return !c.reqEnd && c.reqBase == 0 && len(c.req) == 0 }

// noteOrder notes that the worker spoke first, if it did. It is called for answers that are
// more than a status: a refusal by HEADERS says nothing about the method.
func (c *call) noteOrder() {
	if !c.silent() {
		return
	}
	c.workerFirst = true
	if c.method != nil { // other calls shall know before this one has ended
		c.method.WorkerSpokeFirst()
	}
}
