package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

// callState is where a call stands on its way.
type callState uint8

const (
	callNew       callState = iota // its HEADERS are being looked at
	callGathering                  // the rest of a small request is awaited, R9
	callQueued                     // it waits in the rank
	callPausing                    // a worker has failed it; it waits for its next attempt
	callRunning                    // it has a lease (or needs none) and a stream to a worker
	callLocal                      // cabrank answers it itself
	callOver                       // the worker has no part in it any more; the caller may still be reading
)

// call is one RPC, from its first HEADERS to its last trailer.
//
// Life: newCall, begin, then queued and running in turn, finish, recycle.
// Concurrency: guarded by the lock of its shard, but for the grant, which
// whoever made it writes before the call is posted to the shard's inbox.
type call struct {
	st    *stand
	down  h2.Stream   // towards the caller
	clock shard.Timer // the deadline or the end of the wait
	attempt
	course
}

// course is the part of a call that begins anew, from the zero value, each time
// its memory is used.
type course struct {
	caller *callerConn
	who    *who
	form   *form
	method *method   // nil until a worker has answered it before
	health *question // about health; nil: it is no such call
	check  *check    // of its token, which it waits for, or which has failed

	// A grant on its way from another goroutine; see Granted.
	grant   rank.Lease
	refused rank.Reason

	// Flags stand together: apart they would each take a word.
	state       callState
	awaited     bool   // the ticket is queued, so a grant or refusal is still to come
	grpc        bool   // it is of gRPC
	aside       bool   // reflection, outside the slots
	atDoor      bool   // it counts in callerConn.atDoor
	resting     bool   // it pauses because workers turn it away
	hedging     bool   // hedge runs beside the first attempt
	spent       bool   // bytes were sent that are not kept for a replay
	reqEnd      bool   // the caller has finished sending
	committed   bool   // response HEADERS were forwarded, R3
	respEnd     bool   // the worker has finished sending
	gotData     bool   // of the answer
	goesOn      bool   // the answer has more than a message
	workerFirst bool   // by a worker that had no byte of the request yet
	failed      bool   // by an answer of cabrank's own
	done        bool   // recorded
	partAs      ending // as what it ends at partAt
	failedAs    ending // as what it has failed
	extended    uint8  // times that waitUntil was moved
	idle        stall

	started   time.Duration
	deadline  time.Duration // 0: none
	patience  time.Duration // end of the wait for its request, 0: none, R9
	waitUntil time.Duration // end of queue.timeout
	waited    time.Duration // in the queue, in all
	joined    time.Duration // when it last joined the queue
	work      work
	retries   int           // attempts by its method's policy
	backOffs  int           // those of them that nobody named a time for
	resumeAt  time.Duration // when the next one is due
	partAt    time.Duration // end of the wait for the rest of a message, see endWhole; 0: none
	hedgeAt   time.Duration // when a second attempt is due beside the one that runs, 0: none is
	hedge     *attempt      // the second attempt; once that is over, its memory

	// The request behind its head: bytes that are not sent yet or that a replay
	// would need.
	req      []byte
	reqBase  int // bytes that were dropped in front of req
	credited int // bytes whose credit went back to the caller
	kept     int // bytes counted in stand.replay

	// The answer: bytes and trailers that wait for the caller's window.
	resp     []byte
	respSent int
	respTail []byte // trailers that wait for resp
	boundary grpcwire.Boundary
	ahead    int // bytes of resp whose credit went back to the worker; see absorb
	refusals int // answers of workers without a free thread
	turned   int // times that a worker has turned it away without a look at it, but for refusals

	received, sent int64          // bytes of the request and of the answer that came
	last           *rank.Endpoint // that gave it a slot; nil: none has

	nextFree *call
	counted  int         // bytes of it in callerConn.held
	place    place[call] // in callerConn.waiting
}

// reset gives the call's memory back and makes it ready for its next use.
func (c *call) reset() {
	pool := c.st.Pool()
	if c.form != nil {
		c.st.drop(c.form)
	}
	if c.hedge != nil {
		c.st.recycleAttempt(c.hedge)
	}
	c.place.leave()
	c.holds(0)
	c.repay(c.ahead)
	pool.Put(c.req)
	pool.Put(c.resp)
	pool.Put(c.held)
	pool.Put(c.respTail)
	c.down.Clear()
	c.up.Clear()
	c.effort, c.course = effort{}, course{}
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
	case c.partAt != 0 && now >= c.partAt:
		c.fail(c.partAs, now)
	case c.aside:
		c.fail(endedAsideIdle, now)
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

// setClock winds the call's one timer for what ends it next.
func (c *call) setClock(now time.Duration) {
	at := c.deadline
	switch {
	case c.state == callQueued && (at == 0 || c.waitUntil < at):
		at = c.waitUntil
	case c.state == callGathering && c.patience != 0 && (at == 0 || c.patience < at):
		at = c.patience
	case c.state == callPausing && (at == 0 || c.resumeAt < at):
		at = c.resumeAt
	case c.partAt != 0 && (at == 0 || c.partAt < at):
		at = c.partAt
	case c.hedgeAt != 0 && c.state == callRunning && (at == 0 || c.hedgeAt < at):
		at = c.hedgeAt
	case c.aside && (at == 0 || now+asideIdle < at):
		at = now + asideIdle
	}
	if at == 0 {
		c.st.StopTimer(&c.clock)
		return
	}
	if !c.clock.Set() || c.clock.At() != at {
		c.st.SetTimer(&c.clock, at)
	}
}

// enter brings the call to the rank for the first time.
func (c *call) enter(now time.Duration) {
	c.waitUntil = now + c.st.relay.settings().QueueTimeout
	if c.place.listed() {
		c.waitsNoMore() // unless it has to wait again
	}
	q := &c.ticket.Request // field by field: a value of its size would be made and then copied
	q.Method, q.Account, q.Lane, q.Hash = c.learned(), c.form.account(), c.form.lane, c.form.hash
	q.OnCancel, q.Avoid = c.onCancel(), nil
	q.Deadline, q.Until, q.Arrived = c.deadline, c.waitUntil, now
	lease, verdict, reason := c.st.relay.rank.Acquire(&c.ticket, c, now)
	if verdict == rank.Granted {
		c.run(lease, now)
		return
	}
	c.notGranted(verdict, reason, now)
}

// notGranted takes the rank's first word on a call that does not start at once.
func (c *call) notGranted(verdict rank.Reply, reason rank.Reason, now time.Duration) {
	if verdict == rank.Queued {
		c.wait(now)
		return
	}
	c.fail(endingFor(reason), now)
}

// wait puts the call among those that the rank will call.
func (c *call) wait(now time.Duration) {
	c.state, c.awaited, c.joined = callQueued, true, now
	c.taken()
	c.count()
	c.setClock(now)
}

// leaveQueue gives up the place of a call that waits. A grant may be on its
// way already: Run hands it back.
func (c *call) leaveQueue(now time.Duration) {
	c.forsake()
	if c.state == callPausing || c.state == callGathering {
		c.waitsNoMore()
	}
	if c.state != callQueued {
		return
	}
	c.waited += now - c.joined
	c.waitsNoMore()
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

// Run implements shard.Task: the rank's word has arrived.
func (c *call) Run(now time.Duration) {
	lease, reason := c.grant, c.refused
	c.grant, c.refused, c.awaited = rank.Lease{}, rank.NoReason, false
	c.waitsNoMore()
	switch {
	case c.state != callQueued: // it was given up while the grant was on its way
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

// run brings the call to the endpoint of the lease, or of the next one if that
// cannot be reached.
func (c *call) run(lease rank.Lease, now time.Duration) {
	for moved := false; !c.runAt(lease, now); moved = true {
		if !moved {
			c.st.stats.moved++
		}
		next, granted := c.move(rank.NotSent, now)
		if !granted {
			return
		}
		lease = next
	}
}

// runAt opens the call's stream on the endpoint of the lease. It reports false if
// that is in the pause between two dials (R15): all its slots pause as long, once
// the lease is given back.
func (c *call) runAt(lease rank.Lease, now time.Duration) bool {
	c.hasSlot(lease)
	c.state = callRunning
	c.taken()
	c.waited = lease.Waited()
	c.boundRun(now)
	if p := c.form.policy; p != nil {
		c.planHedge(p, now)
	}
	c.setClock(now)
	c.st.stalls.wind(now)
	u := c.st.upstreamOf(lease.Endpoint())
	switch conn := u.conn(now); {
	case conn != nil:
		c.open(conn, now)
	case u.dials.waits(now), u.cutOff:
		return false // or the grant was on its way when the endpoint was cut off
	default: // the relay ends; another turn in the rank would find the same
		c.fail(endedShutdown, now)
	}
	return true
}

// boundRun applies Options.CallTimeout.
func (c *call) boundRun(now time.Duration) {
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

// again puts a call that has provably not started back into the rank: another
// slot if one is free, else the head of the queue (R1, R4).
//
// NotSent: nothing is learned from a call that its worker has not looked at, or one
// whose connections end would seem to have no threads.
func (c *call) again(outcome rank.Outcome, now time.Duration) {
	c.st.stats.moved++
	if lease, granted := c.move(outcome, now); granted {
		c.run(lease, now)
	}
}

// move takes the call from its worker to the rank. If it reports false, the call
// waits, or has ended.
func (c *call) move(outcome rank.Outcome, now time.Duration) (next rank.Lease, granted bool) {
	c.handBack(outcome, now)
	if c.aside {
		c.enterAsideAgain(now)
		return next, false
	}
	return c.rejoin(now)
}

// handBack takes a call that has not started from its worker. It is on no side then.
func (c *call) handBack(outcome rank.Outcome, now time.Duration) {
	from := c.lease.Endpoint()
	c.extendWait(now)
	c.leaveStream()
	c.up.Clear()
	c.forget()
	if !c.aside {
		c.releaseLease(outcome, now)
		c.state, c.ticket.Request.Avoid = callNew, from
	}
}

// rejoin brings such a call to the rank again, to the head of its line.
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

// extendWait takes the time that a worker has had the call, without looking at it,
// off the wait for a slot: one that says so late would else have the call fail that
// it moves. A worker that has not greeted has had nothing; and how often it is done
// is bounded, so that the wait is, too (R10).
func (c *call) extendWait(now time.Duration) {
	if uc := c.via; uc == nil || !c.lease.Valid() || !uc.link.Conn.Greeted() || c.extended == maxRefusals {
		return
	}
	c.extended++
	c.waitUntil += max(now-c.lease.At(), 0)
}

// releaseLease gives the call's place at a worker back, in a slot or aside.
func (c *call) releaseLease(outcome rank.Outcome, now time.Duration) {
	c.freeSlot(outcome, now)
	if c.aside {
		c.aside = false
		c.st.relay.asides.Add(-1)
	}
}

// release hands the slot back. The grants that it made are posted to their
// shards; the inbox is a leaf lock (R23).
func (st *stand) release(l rank.Lease, outcome rank.Outcome, now time.Duration) {
	until := st.upstreamOf(l.Endpoint()).dials.until // mostly long past
	switch outcome {
	case rank.RefusedByWorker, rank.Lost, rank.NotSent:
		if until > now { // nobody was there to take it
			outcome = rank.NotSent
		}
	default:
		until = now
	}
	st.grants = st.relay.rank.ReleaseAt(l, outcome, until, now, st.grants[:0])
	deliver(st.grants)
}

// leaveWorker ends the worker's part in the call: its stream is cancelled if
// it is still open, and the slot is given back, unless the worker may finish.
func (c *call) leaveWorker(outcome rank.Outcome, now time.Duration) {
	if c.hedging {
		c.dropHedge(rank.Cancelled, now)
	}
	c.heardAgain()
	switch {
	case (outcome == rank.Cancelled || outcome == rank.Failed) && c.neverSeen():
		outcome = rank.NotSent // whatever has ended it, the worker has no part in it
	case outcome == rank.Cancelled && c.mayFinish():
		c.goUnheard(now)
		c.state = callOver
		return
	}
	c.leaveStream()
	c.releaseLease(outcome, now)
	c.state = callOver
	c.dropRequest()
}

// dropRequest frees what was kept of the request.
func (c *call) dropRequest() {
	pool := c.st.Pool()
	pool.Put(c.req)
	c.req, c.reqSent = nil, 0
	c.keep(0)
}

// keep accounts for n bytes held for a replay.
func (c *call) keep(n int) {
	if n != c.kept {
		c.st.replay += int64(n - c.kept)
		c.kept = n
	}
}

// finish records a call whose caller has got everything, or has gone.
func (c *call) finish(now time.Duration) {
	c.st.StopTimer(&c.clock)
	if c.health.watches() {
		delete(c.st.watches, c)
	}
	if c.atDoor {
		c.atDoor = false
		c.caller.atDoor--
	}
	if c.state != callOver {
		c.leaveWorker(rank.Cancelled, now)
	}
	if c.unheard {
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
		if !c.health.watches() && !c.unheard {
			c.st.callFinished()
		}
	}
	c.settle()
}

// settle recycles the call once nothing refers to it any more.
func (c *call) settle() {
	if c.done && !c.awaited && !c.down.Open() && !c.up.Open() && !c.lease.Valid() {
		if c.caller != nil {
			c.caller.callEnded()
		}
		c.st.recycle(c)
	}
}
