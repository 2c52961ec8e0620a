package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/list"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/trace"
)

// call is one RPC, from its first HEADERS to its last trailer. It goes through six steps, each
// of which may answer it and return:
//
//  1. arrive: its head is read (package head), its token checked (token.go), and what
//     Cabrank answers itself is answered (health.go).
//  2. gather: it waits until a worker would have something to do (gather.go).
//  3. acquire: the rank has a slot for it, lets it wait or refuses it (queue.go).
//  4. send: an attempt opens a stream to the worker (attempt.go), and the request follows
//     (request.go). A call that a worker has not seen moves to another one (move.go).
//  5. answer: the worker's answer goes to the caller (answer.go), unless it is tried again or
//     beside (again.go).
//  6. end: it gives back what it holds and is recorded (end.go, record.go). An answer of
//     Cabrank's own comes from fail (ending.go).
//
// Its states and the one timer are in state.go; docs/life-of-a-call.md tells the same story.
//
// Concurrency: guarded by the lock of its shard, but for the grant: the goroutine that
// makes it writes it before it posts the call to the shard's inbox.
type call struct {
	st    *shardState
	down  h2.Stream   // to the caller
	clock shard.Timer // the next event that may end it
	main  *attempt    // whose answer the caller gets; never nil
	callFields
}

// callFields are those that are set to zero before the memory of a call is used again.
type callFields struct {
	caller   *callerConn
	callerID *callers.ID
	head     *head.Head
	method   *stats.Method // nil until a worker has answered the method
	trace    *trace.Call   // its spans; nil: none
	health   *question     // its health question; nil: not a health call
	check    *tokenCheck   // the check of its token that it waits for, or that failed
	hedge    *attempt      // beside main; nil: none, or it is over
	// A grant on its way from another goroutine; see Granted.
	grant   rank.Lease
	refused rank.Reason

	// Flags next to each other share a word.
	state       callState
	awaited     bool // the ticket is queued, so a grant or refusal is still to come
	grpc        bool // a gRPC call
	reflection  bool // a reflection call, outside the slots
	hedged      bool // it has had its hedge
	spent       bool // it cannot be sent again: the caller has part of an answer, or bytes of the request are not kept, R3
	reqEnd      bool // the caller has finished sending
	respEnd     bool // the worker has finished sending
	gotData     bool // DATA of the answer has come
	goesOn      bool // the answer has more than one message
	workerFirst bool // the worker answered before a byte of the request had come
	ended       bool // it was recorded, see end
	code        grpcwire.Code
	endReason   ending // why it ends at endAt
	failedAs    ending // why Cabrank itself ended it; 0: it has not
	extended    uint8  // times that waitUntil was moved
	idle        stall

	traceID    [16]byte // zero: none
	httpStatus int
	started    time.Duration
	waited     time.Duration // total time in the queue
	joined     time.Duration // when it last joined the queue
	work       work

	due
	triesMade
	requestBytes
	answerBytes
	received, sent int64          // bytes of the request and of the answer
	last           *rank.Endpoint // the last endpoint that gave it a slot; nil: none

	nextFree *call
	counted  int             // its bytes in callerConn.held
	node     list.Node[call] // in callerConn.waiting
}

// arrive takes the request's HEADERS.
func (c *call) arrive(b *h2.Block, end bool, now time.Duration) {
	c.reqEnd = end
	c.setHead(c.caller.headOf(b, c.callerID))
	c.beginTrace(b, now)
	if why := faultOf(c.head); why != notEnded {
		c.fail(why, now)
		return
	}
	if after := c.head.MostTime(); after != 0 {
		c.deadline = now + after
	}
	st, cc := c.st, c.caller
	if st.tokens.needsToken(cc) && c.head.Pass == nil && !c.head.IsCheck() {
		c.checkToken(b, now) // admits it later
	} else {
		c.admit(now) // answers it, or gathers
	}
	st.shed(cc, now)
}

// gather makes the call wait for the beginning of its request (R9).
func (c *call) gather(now time.Duration) {
	if c.gathered() {
		c.acquire(now)
		return
	}
	c.become(callGathering)
	c.patience = now + gatherFor
	// Most calls have their message right behind HEADERS and need no timer.
	if conn := c.down.Conn(); conn == nil || !conn.Follows(&c.down) {
		c.count()
		c.setClock(now)
	}
}

// acquire asks the rank for a slot for the first time.
func (c *call) acquire(now time.Duration) {
	c.waitUntil = now + c.st.relay.settings().QueueTimeout
	if c.node.Listed() {
		c.leaveWaiting() // until it waits again
	}
	t := &c.main.ticket
	q := &t.Request // field by field: a composite literal of this size would be copied
	q.Method, q.Account, q.Lane, q.Hash = c.st.relay.methods.InRank(c.method, c.head.Path), c.head.Account(), c.head.Lane, c.head.Hash
	q.OnCancel, q.Avoid = c.onCancel(), nil
	q.Deadline, q.Until, q.Arrived = c.deadline, c.waitUntil, now
	lease, reply, reason := c.st.relay.rank.Acquire(t, c, now)
	c.replied(lease, reply, reason, now)
}

// send starts the call at the endpoint of the lease. While an endpoint cannot be reached,
// it moves on to the next one.
func (c *call) send(lease rank.Lease, now time.Duration) {
	for moved := false; !c.sendTo(lease, now); moved = true {
		if !moved {
			c.st.tally.events[eventMoved]++
		}
		next, granted := c.move(rank.NotSent, now)
		if !granted {
			return
		}
		lease = next
	}
}

// answer takes the last block of the worker's answer: trailers, or all of it in one block.
func (c *call) answer(b *h2.Block, now time.Duration) {
	a := c.main
	if a.code != grpcwire.OK && c.retryAnswer(b, now) {
		return
	}
	if a.noThread {
		c.st.tally.events[eventPassedOn]++
		c.st.logNoThread(c.st.upstreamOf(a.lease.Endpoint()).endpoint)
	}
	if a.held != nil {
		a.stopHolding()
	}
	c.commit()
	c.respEnd = true
	c.passTrailers(b)
	c.workerDone(now)
	c.finishIfDelivered(now)
}

// end records a call whose caller has the whole answer, or has gone. There is no other way
// out.
func (c *call) end(now time.Duration) {
	c.st.StopTimer(&c.clock)
	if !c.state.left() {
		c.leaveWorker(rank.Cancelled, now)
	}
	if c.state == callDetached {
		c.dropAnswer()
	} else {
		c.st.StopTimer(&c.main.hold)
	}
	if conn := c.down.Conn(); conn != nil {
		// The answer is complete; the caller may be sending still (RFC 9113 8.1).
		conn.Reset(&c.down, h2.NoError)
	}
	if !c.ended {
		c.ended = true
		if c.health != nil {
			c.leaveHealth()
		}
		c.st.record(c, now)
		if !c.health.watches() && c.state != callDetached {
			c.st.callFinished()
		}
	}
	c.settle()
}
