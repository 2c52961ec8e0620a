package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/list"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
	"github.com/cabrank/cabrank/internal/stats"
)

// callState is the step that a call has reached.
type callState uint8

const (
	callNew       callState = iota // its HEADERS are being read
	callGathering                  // it waits for the rest of a small request, R9
	callQueued                     // it waits in the rank
	callPausing                    // an attempt has failed; it waits for the next one
	callRunning                    // it has a lease (or needs none) and a stream to a worker
	callLocal                      // Cabrank answers it
	callOver                       // the worker is done with it; the caller may still be reading
)

// call is one RPC, from its first HEADERS to its last trailer.
//
// Life: newCall, begin, then queued and running in turn, finish, recycle.
// Concurrency: guarded by the lock of its shard, but for the grant: the goroutine that
// makes it writes it before it posts the call to the shard's inbox.
type call struct {
	st    *shardState
	down  h2.Stream   // to the caller
	clock shard.Timer // the deadline or the end of the wait
	attempt
	callFields
}

// callFields are the fields of a call that are set to zero before its memory is used
// again.
type callFields struct {
	caller   *callerConn
	callerID *callers.ID
	head     *requestHead
	method   *stats.Method // nil until a worker has answered the method
	health   *question     // its health question; nil: not a health call
	check    *tokenCheck   // the check of its token that it waits for, or that failed

	// A grant on its way from another goroutine; see Granted.
	grant   rank.Lease
	refused rank.Reason

	// Flags next to each other share a word.
	state        callState
	awaited      bool   // the ticket is queued, so a grant or refusal is still to come
	grpc         bool   // a gRPC call
	reflection   bool   // a reflection call, outside the slots
	answeredHere bool   // it counts in callerConn.answeredHere
	pausedUnseen bool   // it pauses because workers turned it away
	hedging      bool   // hedge runs beside the first attempt
	spent        bool   // it has sent bytes that are not kept for a replay
	reqEnd       bool   // the caller has finished sending
	committed    bool   // response HEADERS were forwarded, R3
	respEnd      bool   // the worker has finished sending
	gotData      bool   // DATA of the answer has come
	goesOn       bool   // the answer has more than one message
	workerFirst  bool   // the worker answered before a byte of the request had come
	failed       bool   // Cabrank itself ended it
	done         bool   // finish has recorded it
	endReason    ending // why it ends at endAt
	failedAs     ending // why it failed
	extended     uint8  // times that waitUntil was moved
	idle         stall

	started   time.Duration
	deadline  time.Duration // 0: none
	patience  time.Duration // end of the wait for its request, 0: no end, R9
	waitUntil time.Duration // end of queue.timeout
	waited    time.Duration // total time in the queue
	joined    time.Duration // when it last joined the queue
	work      work
	retries   int           // retries by its method's policy
	backOffs  int           // retries for which the worker named no time
	resumeAt  time.Duration // when the next retry is due
	endAt     time.Duration // end of the wait for the rest of a message, see endAfterMessage; 0: no wait
	hedgeAt   time.Duration // when a hedge is due, 0: never
	hedge     *attempt      // the second attempt, or its memory once it is over

	// The request's DATA: bytes that are not sent yet or that a replay would need.
	req      []byte
	reqBase  int // bytes dropped before req
	credited int // bytes for which the caller has credit back
	kept     int // bytes counted in shardState.replay

	// The answer: DATA and trailers that wait for the caller's window.
	resp     []byte
	respSent int
	respTail []byte // trailers that follow resp
	boundary grpcwire.Boundary
	ahead    int // bytes of resp for which the worker has credit back; see absorb
	refusals int // answers of workers without a free thread
	turned   int // times that a worker turned it away unseen, without refusals

	received, sent int64          // bytes of the request and of the answer
	last           *rank.Endpoint // the last endpoint that gave it a slot; nil: none

	nextFree *call
	counted  int             // its bytes in callerConn.held
	node     list.Node[call] // in callerConn.waiting
}

// reset frees the call's buffers and sets its fields to zero.
func (c *call) reset() {
	pool := c.st.Pool()
	if c.head != nil {
		c.st.releaseHead(c.head)
	}
	if c.hedge != nil {
		c.st.recycleAttempt(c.hedge)
	}
	c.node.Leave()
	c.countHeld(0)
	c.repay(c.ahead)
	pool.Put(c.req)
	pool.Put(c.resp)
	pool.Put(c.held)
	pool.Put(c.respTail)
	c.down.Clear()
	c.up.Clear()
	c.attemptFields, c.callFields = attemptFields{}, callFields{}
}

// Expired implements shard.Expirer.
func (c *call) Expired(_ *shard.Timer, now time.Duration) {
	switch {
	case c.deadline != 0 && now >= c.deadline:
		if c.state == callQueued || c.state == callGathering {
			c.fail(endedDeadlineQueued, now)
		} else {
			c.fail(endedDeadline, now)
		}
	case c.endAt != 0 && now >= c.endAt:
		c.fail(c.endReason, now)
	case c.reflection:
		c.fail(endedReflectionIdle, now)
	case c.state == callGathering:
		c.patienceEnds(now)
	case c.state == callPausing:
		c.resume(now)
	case c.state == callRunning && c.hedgeAt != 0 && now >= c.hedgeAt:
		c.startHedge(now)
	case c.state == callQueued:
		c.fail(c.st.relay.waitedTooLong(), now)
	}
}

// setClock sets the call's one timer to the next event that may end the call.
func (c *call) setClock(now time.Duration) {
	at := c.deadline
	switch {
	case c.state == callQueued && (at == 0 || c.waitUntil < at):
		at = c.waitUntil
	case c.state == callGathering && c.patience != 0 && (at == 0 || c.patience < at):
		at = c.patience
	case c.state == callPausing && (at == 0 || c.resumeAt < at):
		at = c.resumeAt
	case c.endAt != 0 && (at == 0 || c.endAt < at):
		at = c.endAt
	case c.hedgeAt != 0 && c.state == callRunning && (at == 0 || c.hedgeAt < at):
		at = c.hedgeAt
	case c.reflection && (at == 0 || now+reflectionIdle < at):
		at = now + reflectionIdle
	}
	if at == 0 {
		c.st.StopTimer(&c.clock)
		return
	}
	if !c.clock.Set() || c.clock.At() != at {
		c.st.SetTimer(&c.clock, at)
	}
}

// enter asks the rank for a slot for the first time.
func (c *call) enter(now time.Duration) {
	c.waitUntil = now + c.st.relay.settings().QueueTimeout
	if c.node.Listed() {
		c.leaveWaiting() // until it waits again
	}
	q := &c.ticket.Request // field by field: a composite literal of this size would be copied
	q.Method, q.Account, q.Lane, q.Hash = c.st.relay.methods.InRank(c.method, c.head.path), c.head.account(), c.head.lane, c.head.hash
	q.OnCancel, q.Avoid = c.onCancel(), nil
	q.Deadline, q.Until, q.Arrived = c.deadline, c.waitUntil, now
	lease, verdict, reason := c.st.relay.rank.Acquire(&c.ticket, c, now)
	if verdict == rank.Granted {
		c.run(lease, now)
		return
	}
	c.notGranted(verdict, reason, now)
}

// notGranted takes a reply of the rank other than a grant.
func (c *call) notGranted(verdict rank.Reply, reason rank.Reason, now time.Duration) {
	if verdict == rank.Queued {
		c.wait(now)
		return
	}
	c.fail(endingFor(reason), now)
}

// wait marks the call as queued in the rank.
func (c *call) wait(now time.Duration) {
	c.state, c.awaited, c.joined = callQueued, true, now
	c.noteTaken()
	c.count()
	c.setClock(now)
}

// leaveQueue takes a waiting call out of the queue. If a grant is already on its way, Run
// gives it back.
func (c *call) leaveQueue(now time.Duration) {
	c.leaveCheck()
	if c.state == callPausing || c.state == callGathering {
		c.leaveWaiting()
	}
	if c.state != callQueued {
		return
	}
	c.waited += now - c.joined
	c.leaveWaiting()
	if c.awaited && c.st.relay.rank.Leave(&c.ticket) {
		c.awaited = false
	}
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
		c.run(lease, now)
	}
}

// run starts the call at the endpoint of the lease. While an endpoint cannot be reached,
// it moves on to the next one.
func (c *call) run(lease rank.Lease, now time.Duration) {
	for moved := false; !c.runAt(lease, now); moved = true {
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

// runAt opens the call's stream at the endpoint of the lease. It reports false if the
// endpoint is in the pause between two dials (R15). Once the lease is given back, all
// its slots pause as long.
func (c *call) runAt(lease rank.Lease, now time.Duration) bool {
	c.hasSlot(lease)
	c.state = callRunning
	c.noteTaken()
	c.waited = lease.Waited()
	c.applyCallTimeout(now)
	if rule := c.head.rule; rule != nil {
		c.planHedge(rule, now)
	}
	c.setClock(now)
	c.st.stalls.wind(now)
	u := c.st.upstreamOf(lease.Endpoint())
	switch conn := u.conn(now); {
	case conn != nil:
		c.open(conn, now)
	case u.dials.waits(now), u.cutOff:
		return false // cut off while the grant was on its way, or between two dials
	default: // the relay is closing: no endpoint can be reached
		c.fail(endedShutdown, now)
	}
	return true
}

// applyCallTimeout applies Options.CallTimeout.
func (c *call) applyCallTimeout(now time.Duration) {
	if d := c.st.relay.settings().CallTimeout; d > 0 && (c.deadline == 0 || now+d < c.deadline) {
		c.deadline = now + d
	}
}

// open writes the request on an upstream connection.
func (c *call) open(conn *h2.Conn, now time.Duration) {
	if !c.fits(conn) {
		c.fail(endedHeaders, now)
		return
	}
	c.start(conn, now)
}

// requeue moves a call that provably has not started to another slot if one is free,
// else to the head of the queue (R1, R4).
//
// Outcome NotSent is for a call that its worker has not looked at: the rank learns
// nothing from it. Otherwise a worker whose connections end would seem to have no
// threads.
func (c *call) requeue(outcome rank.Outcome, now time.Duration) {
	c.st.tally.events[eventMoved]++
	if lease, granted := c.move(outcome, now); granted {
		c.run(lease, now)
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
	from := c.lease.Endpoint()
	c.extendWait(now)
	c.leaveStream()
	c.up.Clear()
	c.clearAnswer()
	if !c.reflection {
		c.releaseLease(outcome, now)
		c.state, c.ticket.Request.Avoid = callNew, from
	}
}

// rejoin brings such a call back to the rank, at the head of the queue.
func (c *call) rejoin(now time.Duration) (next rank.Lease, granted bool) {
	if now >= c.waitUntil {
		c.fail(c.st.relay.waitedTooLong(), now)
		return next, false
	}
	c.ticket.Request.Until = c.waitUntil
	lease, verdict := c.st.relay.rank.Rejoin(&c.ticket, c, now)
	switch verdict {
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
	if uc := c.via; uc == nil || !c.lease.Valid() || !uc.link.Conn.Greeted() || c.extended == maxRefusals {
		return
	}
	c.extended++
	c.waitUntil += max(now-c.lease.At(), 0)
}

// releaseLease gives back the call's slot, or its place among reflection calls.
func (c *call) releaseLease(outcome rank.Outcome, now time.Duration) {
	c.freeSlot(outcome, now)
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

// leaveWorker ends the worker's part in the call: it cancels an open stream and gives the
// slot back, unless the worker may finish (detach).
func (c *call) leaveWorker(outcome rank.Outcome, now time.Duration) {
	if c.hedging {
		c.dropHedge(rank.Cancelled, now)
	}
	c.reattach()
	switch {
	case (outcome == rank.Cancelled || outcome == rank.Failed) && (c.via == nil || c.unsend()): // it may not have been written at all
		outcome = rank.NotSent // the worker had no part in the call
	case outcome == rank.Cancelled && c.mayFinish():
		c.detach(now)
		c.state = callOver
		return
	}
	c.leaveStream()
	c.releaseLease(outcome, now)
	c.state = callOver
	c.dropRequest()
}

// dropRequest frees the kept bytes of the request.
func (c *call) dropRequest() {
	pool := c.st.Pool()
	pool.Put(c.req)
	c.req, c.reqSent = nil, 0
	c.keep(0)
}

// keep sets the number of bytes that the call keeps for a replay.
func (c *call) keep(n int) {
	if n != c.kept {
		c.st.replay += int64(n - c.kept)
		c.kept = n
	}
}

// finish records a call whose caller has the whole answer, or has gone.
func (c *call) finish(now time.Duration) {
	c.st.StopTimer(&c.clock)
	if c.health.watches() {
		delete(c.st.watches, c)
	}
	if c.answeredHere {
		c.answeredHere = false
		c.caller.answeredHere--
	}
	if c.state != callOver {
		c.leaveWorker(rank.Cancelled, now)
	}
	if c.detached {
		c.dropAnswer()
	} else {
		c.st.StopTimer(&c.hold)
	}
	if conn := c.down.Conn(); conn != nil {
		// The answer is complete; the caller may be sending still (RFC 9113 8.1).
		conn.Reset(&c.down, h2.NoError)
	}
	if !c.done {
		c.done = true
		c.st.record(c, now)
		if !c.health.watches() && !c.detached {
			c.st.callFinished()
		}
	}
	c.settle()
}

// settle recycles the call once nothing refers to it.
func (c *call) settle() {
	if c.done && !c.awaited && !c.down.Open() && !c.up.Open() && !c.lease.Valid() {
		if c.caller != nil {
			c.caller.callEnded()
		}
		c.st.recycle(c)
	}
}
