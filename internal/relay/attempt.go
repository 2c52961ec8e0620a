package relay

import (
	"net/http"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

// attempt is one try of a call at one worker: the slot that it has there, the
// stream towards the worker, and what the worker has said so far.
//
// Shape: every call has one by value, which is the try that its caller hears
// of; a second one beside it takes its place if it is the better one (succeed).
// The attempt owns its stream and its timer: what they are told finds the
// call through it.
// Concurrency: guarded by the lock of the call's shard.
type attempt struct {
	call   *call
	ticket rank.Ticket
	up     h2.Stream   // towards the worker
	hold   shard.Timer // end of the wait for a second block, R2, or for the end of an unheard call, R5
	effort
}

// effort is the part of an attempt that begins anew, from the zero value, each
// time its memory is used.
type effort struct {
	via     *upstreamConn // the connection of up; outlives a reset by the worker
	lease   rank.Lease
	reqSent int // bytes of call.req that were written upstream
	// previous is how many attempts of the call came before, but for those that
	// have provably not started.
	previous int
	held     []byte // response HEADERS that are held back, R2

	httpStatus int
	code       grpcwire.Code
	unseen     bool // it was taken back before the worker had seen it
	answered   bool // by the worker
	noThread   bool // in the words of a worker without a free thread, which were passed on, R1
	holding    bool // held waits
	unheard    bool // the caller has gone, and the worker has not been told, R5
}

// The texts by which the servers of gRPC's C core say that they have no free thread:
// GRPC::RpcServer, and grpcio with maximum_concurrent_rpcs.
const (
	noThreadInRuby   = "No free threads in thread pool"
	noThreadInPython = "Concurrent RPC limit exceeded!"
)

// belongTo makes the attempt one of a call, for as long as its memory lives.
func (a *attempt) belongTo(c *call) {
	a.call = c
	a.up.Owner, a.hold.Owner = a, a
}

// Expired implements shard.Expirer: no second block has come, or no end of an
// answer that nobody waits for.
func (a *attempt) Expired(_ *shard.Timer, now time.Duration) {
	if a.unheard {
		a.call.st.stats.cutUnheard++
		a.endUnheard(rank.Cancelled, now)
		return
	}
	a.stopHolding()
}

// start writes the call's request on an upstream connection that takes it, as
// far as it has come.
func (a *attempt) start(conn *h2.Conn, now time.Duration) {
	c := a.call
	var field []byte
	head, at := c.form.head, max(c.form.timeoutAt, 0)
	if c.deadline != 0 && c.grpc {
		if c.form.timeoutAt < 0 {
			at = len(head) // the bound is ours: call_timeout, or the timeout of a method
		}
		field = c.st.timeoutField(c.deadline - now)
	}
	a.reqSent, a.via, a.unseen = 0, conn.Owner.(*upstreamConn), false
	a.via.upstream.calls++
	end := c.reqEnd && len(c.req) == 0
	if c.form.bodyless {
		a.up.NoContent()
	}
	if a.previous == 0 {
		conn.Open(&a.up, end, head[:at], field, head[at:])
	} else {
		a.openAgain(conn, end, field, at)
	}
	if end {
		a.via.sent(c.method, now)
		return
	}
	a.pumpRequest()
}

// unsend takes the call back if the worker has not seen it: a call that is still in
// our buffer never reaches the worker (R14). It reports whether that is so, or was
// when it was taken back before.
func (a *attempt) unsend() bool {
	if conn := a.up.Conn(); conn != nil && conn.Unsend(&a.up) {
		a.unseen = true
	}
	return a.unseen
}

// neverSeen takes the call back if the worker has not seen it, and reports whether
// that is so; the call has a slot there and may not have been written at all.
func (a *attempt) neverSeen() bool { return a.via == nil || a.unsend() }

// leaveStream ends the worker's stream, if it is still open, and reports whether
// the worker has never seen it. The worker may have ended it by itself: its
// connection is told in either case, for it may wait for its last stream.
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
		u.gaveUp(a, lease.At(), now)
	}
	st.release(lease, outcome, now)
}

// verdict is the outcome of an attempt that its worker has answered: whether the
// status tells of a fault of its own, rather than of the request.
func (a *attempt) verdict() rank.Outcome {
	switch {
	case a.noThread:
		return rank.MaybeRefused
	case a.isFault():
		return rank.Faulty
	default:
		return rank.OK
	}
}

func (a *attempt) isFault() bool {
	if !a.call.grpc {
		return a.httpStatus >= http.StatusInternalServerError
	}
	switch a.code {
	case grpcwire.Unavailable, grpcwire.Internal, grpcwire.Unknown, grpcwire.DataLoss:
		return true
	default:
		return false
	}
}

// readStatus keeps the status of the answer for the record.
func (a *attempt) readStatus(b *h2.Block) {
	begun := a.answered
	a.answered = true
	if b.Status != 0 {
		a.httpStatus = b.Status
		a.code = grpcwire.CodeFromHTTP(b.Status)
	}
	if w, found := b.Watched(fieldGRPCStatus); found {
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

// failedInTwo notes that a worker which cabrank started has failed a call by a second
// block without a message between (R2). They run one program, so it is known of all, for
// good: after a restart with another command HEADERS may be late for nothing.
func (a *attempt) failedInTwo() {
	if a.via == nil || !a.via.upstream.endpoint.local {
		return
	}
	if known := &a.call.st.relay.failInTwo; !known.Load() { // a store takes the line from all other shards
		known.Store(true)
	}
}

// mayMove reports whether the call may be sent again by what its answer says, which
// only one that may run twice is. So it is for workers that cabrank started: they may
// say that they have failed in two blocks (R2).
func (a *attempt) mayMove() bool {
	c := a.call
	return c.grpc && c.idempotent() && c.replayable() && a.lease.Valid() &&
		c.st.upstreamOf(a.lease.Endpoint()).endpoint.local
}

// saysNoThread reports whether an answer is that of a worker without a free thread. It
// moves no call: a handler that passes on what another server told it says the same,
// after it has run (R1).
func (a *attempt) saysNoThread(b *h2.Block) bool {
	if a.code != grpcwire.ResourceExhausted || !a.call.grpc || a.call.gotData || !a.lease.Valid() ||
		!a.call.st.upstreamOf(a.lease.Endpoint()).endpoint.local {
		return false
	}
	_, asked := b.Watched(fieldPushback)
	return !asked && a.hasRefusalText(b)
}

// hasRefusalText reports whether an answer says so in the exact words of Ruby's or
// Python's server.
func (a *attempt) hasRefusalText(b *h2.Block) bool {
	message, found := b.Watched(fieldGRPCMessage)
	if !found {
		return false
	}
	st := a.call.st
	st.scratch = grpcwire.DecodeMessage(st.scratch[:0], message.Value)
	return string(st.scratch) == noThreadInRuby || string(st.scratch) == noThreadInPython
}

// holdBack keeps response HEADERS from the caller that may be the first half of
// a failure in two blocks (R2).
func (a *attempt) holdBack(b *h2.Block, now time.Duration) {
	a.held = a.call.st.Pool().Append(a.held[:0], b.Enc)
	a.holding = true
	wait := holdBriefly
	if b.Fields <= plainFields && a.call.st.relay.failInTwo.Load() {
		wait = holdFor
	}
	a.call.st.SetTimer(&a.hold, now+wait)
}

// stopHolding lets held HEADERS go.
func (a *attempt) stopHolding() {
	if !a.holding {
		return
	}
	c := a.call
	a.choose(c.st.Now()) // from here on it is the call's own
	c.holding = false
	c.st.StopTimer(&c.hold)
	c.commit()
	c.toCaller(c.held, false)
	c.st.Pool().Put(c.held) // a long stream would keep it for nothing
	c.held = nil
}

// forget drops what a worker has said that did not take the call.
func (a *attempt) forget() {
	c := a.call
	c.st.StopTimer(&a.hold)
	c.st.Pool().Put(a.held)
	a.held, a.holding = nil, false
	a.answered, a.noThread, a.code, a.httpStatus = false, false, grpcwire.OK, 0
}
