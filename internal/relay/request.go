package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
)

// requestBytes are the DATA of a request that are not sent yet or that a replay would need.
type requestBytes struct {
	req      []byte
	reqBase  int // bytes dropped before req
	credited int // bytes for which the caller has credit back
	kept     int // bytes counted in shardState.replay
}

// requestHeaders implements owner. Trailers of a request only end it: gRPC has none, and
// grpc-go ends a connection, with everybody's calls, when it meets some.
func (c *call) requestHeaders(b *h2.Block, end bool, now time.Duration) {
	if c.state != callNew {
		c.requestData(nil, end, now)
		return
	}
	c.arrive(b, end, now)
}

// requestTooLarge implements owner: the part of the list within the limit says in which
// form the caller wants to be told.
func (c *call) requestTooLarge(end bool, now time.Duration) {
	if c.state != callNew { // they are trailers
		c.requestData(nil, end, now)
		return
	}
	c.reqEnd = end
	c.setHead(c.st.heads.ReadKind(c.st.Block(), c.callerID))
	c.fail(endedHeaders, now)
}

// faultOf returns the answer to a head that no worker gets; notEnded: none.
func faultOf(h *head.Head) ending {
	switch {
	case h.BadTimeout:
		return endedTimeout
	case h.Connect: // RFC 9113 8.5: a tunnel is no call
		return endedConnect
	case h.TooManyHops:
		return endedCycle
	}
	return notEnded
}

// admit routes a call whose token, if one is needed, was checked.
func (c *call) admit(now time.Duration) {
	st, cc := c.st, c.caller
	if c.head.NotAllowed {
		c.fail(endedBarred, now)
		return
	}
	if c.head.OwnService && cc.fromNetwork() && !st.relay.settings().OwnServices.offers(c.head.Path) {
		c.fail(endedNoMethod, now)
		return
	}
	route := routeCall
	if c.head.OwnService {
		route = st.relay.routeOf(c.head)
	}
	switch {
	case route == routeHealthCheck && !cc.overLimit():
		c.answerHealth(route, now)
	case route == routeReflection:
		c.startReflection(now)
	case cc.crowdedOut(now):
		c.fail(endedBuffer, now)
	case route == routeHealthWatch, route == routeHealthList: // its answer is as long as workers have services
		c.answerHealth(route, now)
	case c.method == nil && c.grpc && st.relay.services.lacks(c.head.Path):
		c.fail(endedNoMethod, now)
	default:
		st.retryBudget.Count(now)
		c.gather(now)
	}
}

// setHead sets the head of the call.
func (c *call) setHead(h *head.Head) {
	c.head = h
	c.grpc, c.method = h.GRPC, h.Method
}

// timeoutField encodes a grpc-timeout of the time left.
func (st *shardState) timeoutField(left time.Duration) []byte {
	value := grpcwire.AppendTimeout(st.digits[:0], max(left, 1))
	st.scratch = h2.AppendFieldBytes(st.scratch[:0], "grpc-timeout", value)
	return st.scratch
}

// requestData writes bytes of the request to the worker as far as its window allows, and puts
// the rest into the call's buffer. The caller gets credit back when they are sent, so that a
// queued call holds at most one window (R11).
func (c *call) requestData(p []byte, end bool, now time.Duration) {
	c.reqEnd = c.reqEnd || end
	c.received += int64(len(p))
	c.idle = stall{} // the engine passes no empty frame on
	if c.state == callLocal {
		c.localData(p, now)
		return
	}
	if c.state.left() {
		return
	}
	if c.state == callRunning {
		p = c.passOn(p, now)
	}
	if len(p) > 0 {
		c.req = c.st.Pool().Append(c.req, p)
	}
	switch {
	case c.state == callRunning:
		if c.reflection {
			c.setClock(now)
		}
		c.main.pumpRequest()
	case c.state == callGathering:
		c.gatherMore(now)
	case c.state.waits():
		st, cc := c.st, c.caller
		c.count()
		st.shed(cc, now)
	}
}

// passOn writes bytes that no replay will need straight to the worker, if no others wait and
// as far as its window allows, and returns the rest.
func (c *call) passOn(p []byte, now time.Duration) []byte {
	conn := c.main.up.Conn()
	if conn == nil || len(p) == 0 || c.main.reqSent < len(c.req) || c.keeps(len(c.req)+len(p)) {
		return p
	}
	n := min(conn.Writable(&c.main.up), len(p))
	if n == 0 {
		return p
	}
	c.spent = true
	c.trimRequest()
	conn.WriteData(&c.main.up, p[:n], c.reqEnd && n == len(p))
	if c.main.up.LocalDone() {
		c.main.via.sent(c.method, now)
	}
	c.reqBase += n
	c.creditCaller(n)
	return p[n:]
}

// pumpRequest writes waiting bytes of the request as far as the worker's window allows, and
// gives the caller credit back.
func (a *attempt) pumpRequest() {
	c, conn := a.call, a.up.Conn()
	if conn == nil || a.up.LocalDone() {
		return
	}
	for a.reqSent < len(c.req) {
		n := min(conn.Writable(&a.up), len(c.req)-a.reqSent)
		if n == 0 {
			conn.Want(&a.up)
			break
		}
		last := c.reqEnd && a.reqSent+n == len(c.req)
		conn.WriteData(&a.up, c.req[a.reqSent:a.reqSent+n], last)
		a.reqSent += n
		c.creditCaller(n)
	}
	if a.reqSent == len(c.req) && c.reqEnd && !a.up.LocalDone() && a.up.Open() {
		conn.WriteData(&a.up, nil, true)
	}
	if a.up.LocalDone() {
		a.via.sent(c.method, c.st.Now())
	}
	c.trimRequest()
}

// creditCaller gives credit back for bytes that were sent for the first time, not again by a
// replay.
func (c *call) creditCaller(n int) {
	total := c.reqBase + c.main.reqSent
	fresh := min(n, total-c.credited)
	if fresh > 0 {
		c.credited += fresh
		if conn := c.down.Conn(); conn != nil {
			conn.Credit(&c.down, fresh)
		}
	}
}

// trimRequest drops sent bytes if no replay will need them: the call is committed, or more
// than ReplayBytes were sent, or the process keeps as much as it may (R3).
func (c *call) trimRequest() {
	if c.keeps(len(c.req)) {
		c.keep(cap(c.req))
		return
	}
	c.keep(0)
	if c.main.reqSent == 0 {
		return
	}
	c.spent = true
	if 2*c.main.reqSent < len(c.req) { // as in trimAnswer
		return
	}
	c.reqBase += c.main.reqSent
	rest := copy(c.req, c.req[c.main.reqSent:])
	c.req, c.main.reqSent = c.req[:rest], 0
	if rest == 0 {
		c.st.Pool().Put(c.req)
		c.req = nil
	}
}

// keeps reports whether the first n bytes of the request stay for a replay.
func (c *call) keeps(n int) bool {
	if c.hedge != nil {
		return true // both attempts send from it, whatever a reload changes
	}
	if !c.replayable() || n > c.st.relay.settings().ReplayBytes {
		return false
	}
	extra := int64(max(n, cap(c.req)) - c.kept)
	return extra <= 0 || c.st.replay+extra <= c.st.replayTotal
}

// dropRequest frees the kept bytes of the request.
func (c *call) dropRequest() {
	pool := c.st.Pool()
	pool.Put(c.req)
	c.req, c.main.reqSent = nil, 0
	c.keep(0)
}

// keep sets the number of bytes that the call keeps for a replay.
func (c *call) keep(n int) {
	if n != c.kept {
		c.st.replay += int64(n - c.kept)
		c.kept = n
	}
}

// replayable reports whether the call can still be sent to another worker unchanged.
func (c *call) replayable() bool { return !c.spent }
