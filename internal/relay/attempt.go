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
	answered   bool // by the worker
	holding    bool // held waits
	unheard    bool // the caller has gone, and the worker has not been told, R5
}

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
			at = len(head) // the bound is ours: server.proxy_timeout
		}
		field = c.st.timeoutField(c.deadline - now)
	}
	a.reqSent, a.via = 0, conn.Owner.(*upstreamConn)
	end := c.reqEnd && len(c.req) == 0 && c.trailers == nil
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
// our buffer never reaches the worker (R14).
func (a *attempt) unsend() bool {
	conn := a.up.Conn()
	return conn != nil && conn.Unsend(&a.up)
}

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
	if outcome == rank.OK && a.isFault() {
		outcome = rank.Faulty
	}
	u := st.upstreamOf(lease.Endpoint())
	switch outcome {
	case rank.OK, rank.Faulty:
		u.served++
		u.touch(now)
	case rank.Failed:
		u.served++
	case rank.RefusedByWorker:
	case rank.NotSent:
		a.call.work.cut = true
	case rank.Cancelled:
		u.served++
		a.call.work.cut = true
		u.gaveUp(a.call.method, now)
	}
	st.release(lease, outcome, now)
}

// isFault reports whether the worker's answer tells of a fault of its own, rather
// than of the request.
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
	}
}

// understandsRefusals reports whether the worker is one whose words for having
// no free thread are known (R1).
func (a *attempt) understandsRefusals() bool {
	st := a.call.st
	return a.call.grpc && a.lease.Valid() && len(st.relay.settings().refusals) > 0 &&
		st.upstreamOf(a.lease.Endpoint()).endpoint.local
}

// mayBeRefused reports whether an answer can still turn out to be a worker's
// word that it has no free thread.
func (a *attempt) mayBeRefused() bool {
	return a.call.replayable() && a.understandsRefusals()
}

// isRefusal recognizes a worker without a free thread by its exact words, and
// only from workers that cabrank started; the application's own
// RESOURCE_EXHAUSTED looks the same but for the text (R1).
func (a *attempt) isRefusal(b *h2.Block) bool {
	if !a.understandsRefusals() || a.code != grpcwire.ResourceExhausted {
		return false
	}
	if _, found := b.Watched(fieldPushback); found {
		return false
	}
	message, found := b.Watched(fieldGRPCMessage)
	if !found {
		return false
	}
	st := a.call.st
	st.scratch = grpcwire.DecodeMessage(st.scratch[:0], message.Value)
	return st.relay.settings().refusals[string(st.scratch)]
}

// holdBack keeps response HEADERS from the caller that may be the first half of
// a refusal in two blocks (R2).
func (a *attempt) holdBack(b *h2.Block, now time.Duration) {
	a.held = a.call.st.Pool().Append(a.held[:0], b.Enc)
	a.holding = true
	wait := holdFor
	if b.Fields > plainFields {
		wait = holdTelling
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
	a.answered, a.code, a.httpStatus = false, grpcwire.OK, 0
}
