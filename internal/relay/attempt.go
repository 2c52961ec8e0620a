package relay

import (
	"net/http"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

// attempt is one try of a call at one worker: its slot there, the stream to the
// worker, and the worker's answer so far.
//
// Shape: a call has one whose answer its caller gets (call.main), and at times a hedge beside
// it, which takes its place if it wins. The attempt owns its stream and its timer, and their
// events reach the call through it.
// Concurrency: guarded by the lock of the call's shard.
type attempt struct {
	call   *call
	ticket rank.Ticket
	up     h2.Stream   // towards the worker
	hold   shard.Timer // end of the wait for a second block, R2, or for the end of a detached call, R5
	attemptFields
}

// attemptFields are the fields of an attempt that are set to zero before its memory is
// used again.
type attemptFields struct {
	via     *upstreamConn // the connection of up; outlives a reset by the worker
	lease   rank.Lease
	reqSent int // bytes of call.req that were written upstream
	// previous is the number of earlier attempts of the call, without those that
	// provably did not start.
	previous int
	held     []byte // response HEADERS held back until hold ends, R2; nil: none

	httpStatus int
	code       grpcwire.Code
	unseen     bool // taken back before the worker saw it
	answered   bool // the worker has begun its answer
	noThread   bool // the answer says that the worker has no free thread, R1
	span       int  // 1 + the number of its span, or of the wait before it; 0: none
}

// The messages of gRPC's C core servers without a free thread: GRPC::RpcServer, and
// grpcio with maximum_concurrent_rpcs.
const (
	noThreadInRuby   = "No free threads in thread pool"
	noThreadInPython = "Concurrent RPC limit exceeded!"
)

// newAttempt returns an empty attempt of c.
func (st *shardState) newAttempt(c *call) *attempt {
	var a *attempt
	if last := len(st.freeAttempts) - 1; last >= 0 {
		a, st.freeAttempts = st.freeAttempts[last], st.freeAttempts[:last]
	} else {
		a = new(attempt)
		a.up.Owner, a.hold.Owner = a, a
	}
	a.call = c
	return a
}

// clear makes an attempt whose stream is closed and whose slot is free ready for its next use.
func (a *attempt) clear() {
	a.call.st.Pool().Put(a.held)
	a.up.Clear()
	a.attemptFields = attemptFields{}
}

// recycleAttempt keeps the memory of a cleared attempt for its next use.
func (st *shardState) recycleAttempt(a *attempt) {
	a.clear()
	a.call = nil
	if len(st.freeAttempts) < maxFree {
		st.freeAttempts = append(st.freeAttempts, a)
	}
}

// Expired implements shard.Expirer: no second block has come, or a detached call has
// not ended.
func (a *attempt) Expired(_ *shard.Timer, now time.Duration) {
	if a.call.state == callDetached {
		a.call.st.tally.events[eventUnheardCut]++
		a.endDetached(rank.Cancelled, now)
		return
	}
	if a.held != nil {
		a.stopHolding()
	}
}

// sendTo opens the call's stream at the endpoint of the lease. It reports false if the
// endpoint is in the pause between two dials (R15). Once the lease is given back, all
// its slots pause as long.
func (c *call) sendTo(lease rank.Lease, now time.Duration) bool {
	c.main.hasSlot(lease)
	c.become(callRunning)
	if c.caller.local != nil {
		c.noteTaken()
	}
	c.applyCallTimeout(now)
	if rule := c.head.Rule; rule != nil {
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
	if !c.main.fits(conn) {
		c.fail(endedHeaders, now)
		return
	}
	c.main.start(conn, now)
}

// start opens a stream on an upstream connection and writes the part of the request
// that is here.
func (a *attempt) start(conn *h2.Conn, now time.Duration) {
	c := a.call
	var own [head.OwnFields][]byte
	if c.deadline != 0 && c.grpc {
		own[head.OwnTimeout] = c.st.timeoutField(c.deadline - now)
	}
	if a.previous > 0 {
		own[head.OwnTries] = c.st.heads.Tries(c.head, a.previous)
	}
	a.reqSent, a.via, a.unseen = 0, conn.Owner.(*upstreamConn), false
	a.via.upstream.calls++
	end := c.reqEnd && len(c.req) == 0
	if c.head.Bodyless {
		a.up.NoContent()
	}
	if a.call.trace != nil {
		a.beginSpan(&own, now)
	}
	var parts [2*len(own) + 1][]byte
	conn.Open(&a.up, end, c.head.Parts(parts[:0], &own)...)
	if end {
		a.via.sent(c.method, now)
		return
	}
	a.pumpRequest()
}

// fits reports whether the attempt's header list is within the limit of the upstream
// peer. In HTTP/2 the limit is advice (RFC 9113 6.5.2), but servers on gRPC's C core 1.51
// end the connection, with everybody's calls, at the first list above it [E] (R12).
func (a *attempt) fits(conn *h2.Conn) bool {
	return a.call.head.ListSize(a.previous > 0) <= conn.PeerHeaderList()
}

// unsend takes the call back if it is still in our output buffer, so that it never
// reaches the worker (R14). It reports whether the worker has not seen the call, now or
// when it was taken back before.
func (a *attempt) unsend() bool {
	if conn := a.up.Conn(); conn != nil && conn.Unsend(&a.up) {
		a.unseen = true
	}
	return a.unseen
}

// leaveStream ends the worker's stream, if it is still open, and reports whether the
// worker has never seen it. It tells the connection in any case: a retired connection
// waits for its last stream.
func (a *attempt) leaveStream() (unseen bool) {
	uc := a.via
	if uc == nil {
		return false
	}
	a.via = nil
	if a.up.Open() {
		if unseen = a.unsend(); !unseen {
			uc.link.Conn.Reset(&a.up, h2.Cancel)
		}
	}
	uc.streamEnded()
	return unseen
}

// hasSlot notes that the attempt has a lease.
func (a *attempt) hasSlot(lease rank.Lease) {
	a.lease = lease
	a.call.last = lease.Endpoint()
	a.call.work.begin(lease.At())
}

// freeSlot ends the lease, if there is one, exactly once.
func (a *attempt) freeSlot(outcome rank.Outcome, now time.Duration) {
	if a.call.trace != nil {
		a.endSpan(outcome, now)
	}
	if !a.lease.Valid() {
		return
	}
	st, lease := a.call.st, a.lease
	a.lease = rank.Lease{}
	a.call.work.end(now)
	u := st.upstreamOf(lease.Endpoint())
	switch outcome {
	case rank.OK, rank.Faulty:
		u.served++
		u.touch(now)
	case rank.Failed:
		u.served++
	case rank.RefusedByWorker, rank.MaybeRefused, rank.Lost, rank.NotSent: // a refusal is no sign of life (R6)
	case rank.Cancelled:
		u.served++
		u.noteGivenUp(a, lease.At(), now)
	}
	st.release(lease, outcome, now)
}

// verdict returns the outcome of an answered attempt: whether its status is a fault of
// the worker rather than of the request.
func (a *attempt) verdict() rank.Outcome {
	fault := a.httpStatus >= http.StatusInternalServerError
	if a.call.grpc {
		fault = faults>>a.code&1 != 0
	}
	switch {
	case a.noThread:
		return rank.MaybeRefused
	case fault:
		return rank.Faulty
	default:
		return rank.OK
	}
}

// faults are the codes, a bit each, that tell of a fault of the worker.
const faults = 1<<grpcwire.Unavailable | 1<<grpcwire.Internal | 1<<grpcwire.Unknown | 1<<grpcwire.DataLoss

// readStatus keeps the status of the answer for the record.
func (a *attempt) readStatus(b *h2.Block) {
	begun := a.answered
	a.answered = true
	if b.Status != 0 {
		a.httpStatus = b.Status
		a.code = grpcwire.CodeFromHTTP(b.Status)
	}
	if w, found := b.Watched(head.FieldGRPCStatus); found {
		if code, ok := grpcwire.ParseCode(w.Value); ok {
			a.code = code
		} else {
			a.code = grpcwire.Unknown
		}
		if begun && a.code != grpcwire.OK && !a.call.gotData {
			a.failedInTwo()
		}
	}
}

// failedInTwo notes that a worker of Cabrank's own has failed a call by a second block
// right behind the first (R2). All such workers run one program, so the note is for all
// and stays: after a restart with another command HEADERS may be late for nothing.
func (a *attempt) failedInTwo() {
	if a.via == nil || !a.via.upstream.endpoint.local {
		return
	}
	if known := &a.call.st.relay.failInTwo; !known.Load() { // a store takes the line from all other shards
		known.Store(true)
	}
}

// mayMove reports whether the answer may have the call sent again: the call may run
// twice, and the worker is one of Cabrank's own, which may fail in two blocks (R2).
func (a *attempt) mayMove() bool {
	c := a.call
	return c.grpc && c.head.Rule != nil && c.head.Rule.Idempotent && c.replayable() && a.lease.Valid() &&
		c.st.upstreamOf(a.lease.Endpoint()).endpoint.local
}

// saysNoThread reports whether the answer says that the worker has no free thread. Such
// an answer moves no call: a handler may have run and pass on the same words of another
// server (R1).
func (a *attempt) saysNoThread(b *h2.Block) bool {
	if a.code != grpcwire.ResourceExhausted || !a.call.grpc || a.call.gotData || !a.lease.Valid() ||
		!a.call.st.upstreamOf(a.lease.Endpoint()).endpoint.local {
		return false
	}
	_, asked := b.Watched(head.FieldPushback)
	return !asked && a.hasRefusalText(b)
}

// hasRefusalText reports whether the answer has the exact message of Ruby's or Python's
// server without a free thread.
func (a *attempt) hasRefusalText(b *h2.Block) bool {
	message, found := b.Watched(head.FieldGRPCMessage)
	if !found {
		return false
	}
	st := a.call.st
	st.scratch = grpcwire.DecodeMessage(st.scratch[:0], message.Value)
	return string(st.scratch) == noThreadInRuby || string(st.scratch) == noThreadInPython
}

// holdBack holds response HEADERS that may be the first half of a failure in two
// blocks (R2).
func (a *attempt) holdBack(b *h2.Block, now time.Duration) {
	a.held = a.call.st.Pool().Append(a.held[:0], b.Enc)
	wait := holdBriefly
	if b.Fields <= plainFields && a.call.st.relay.failInTwo.Load() {
		wait = holdFor
	}
	a.call.st.SetTimer(&a.hold, now+wait)
}

// stopHolding sends held HEADERS to the caller.
func (a *attempt) stopHolding() {
	c := a.call
	a.winRace(c.st.Now())
	c.st.StopTimer(&a.hold)
	c.commit()
	c.toCaller(a.held, false)
	c.st.Pool().Put(a.held) // a long stream would keep it for nothing
	a.held = nil
}

// clearAnswer drops the answer of a worker that did not take the call.
func (a *attempt) clearAnswer() {
	st := a.call.st
	st.StopTimer(&a.hold)
	st.Pool().Put(a.held)
	a.held = nil
	a.answered, a.noThread, a.code, a.httpStatus = false, false, grpcwire.OK, 0
}

// work adds up the time in which a call has a slot. Attempts at the same time count once.
type work struct {
	tries int // attempts with a slot now
	since time.Duration
	total time.Duration
	first time.Duration // from the grant to the first byte of the answer, of the attempt that answered
	any   bool
	lost  bool // the last attempt ended unanswered with its worker's connection
}

func (w *work) begin(at time.Duration) {
	if w.tries == 0 {
		w.since = at
	}
	w.tries++
	w.any = true
}

func (w *work) end(now time.Duration) {
	if w.tries--; w.tries == 0 {
		w.total += max(now-w.since, 0)
	}
}
