package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// With on_cancel: finish a worker does not learn that its caller has gone (R5). It
// answers nobody: its answer is read, so that it can finish, and dropped.
// The call stays in memory for its slot, that is all.

// maxDetached is how long a worker may go on like this, as long as a ghost may be held. Then
// its stream is cancelled.
const maxDetached = 30 * time.Second

// mayFinish reports whether the worker may finish the call after its caller has gone: not if
// it waits for the rest of the request, and not when the relay ends.
func (c *call) mayFinish() bool {
	if c.state != callRunning || !c.reqEnd || !c.main.lease.Valid() || !c.main.up.Open() || c.st.relay.closing.Load() {
		return false
	}
	return c.finishes()
}

// finishes reports whether the worker may finish cancelled calls (on_cancel: finish).
func (c *call) finishes() bool {
	return c.main.ticket.Request.OnCancel == rank.Finish
}

// detach lets the worker finish the call without its caller.
func (c *call) detach(now time.Duration) {
	c.become(callDetached)
	c.st.Pool().Put(c.main.held)
	c.main.held = nil
	c.commit() // nothing is kept for another attempt
	c.st.relay.rank.Unheard(c.main.lease)
	c.st.SetTimer(&c.main.hold, now+maxDetached)
}

// dropAnswer frees the waiting answer of a caller that has gone. A worker that goes on
// gets its credit back: it would stop without.
func (c *call) dropAnswer() {
	c.creditWorker(len(c.resp) - c.respSent)
	c.st.Pool().Put(c.resp)
	c.resp, c.respSent = nil, 0
	c.count()
}

// detachedHeaders takes a header block that nobody waits for.
func (a *attempt) detachedHeaders(b *h2.Block, end bool, now time.Duration) {
	if !end {
		return
	}
	answered := a.answered // for the record, which may come later
	a.readStatus(b)
	a.answered = answered
	outcome := a.verdict()
	switch {
	case a.saysNoThread(b):
		outcome = rank.MaybeRefused
	case a.code == grpcwire.DeadlineExceeded:
		outcome = a.unlessByClock(outcome)
	}
	a.endDetached(outcome, now)
}

// detachedReset takes the end of the stream by the worker.
func (a *attempt) detachedReset(code h2.ErrCode, now time.Duration) {
	outcome := rank.RefusedByWorker
	if code != h2.RefusedStream {
		outcome = a.unlessByClock(rank.Failed)
	}
	a.endDetached(outcome, now)
}

// unlessByClock returns the outcome of a stream that the worker ended. At the deadline the
// libraries of gRPC (grpc-go, C core) end the stream by themselves while the handler goes
// on. Its end stays unknown then, and the slot is held as a ghost.
func (a *attempt) unlessByClock(outcome rank.Outcome) rank.Outcome {
	if !a.call.late() {
		return outcome
	}
	a.ticket.Request.OnCancel = rank.Hold
	return rank.Cancelled
}

// detachedData takes bytes that nobody waits for.
func (a *attempt) detachedData(p []byte, end bool, now time.Duration) {
	if conn := a.up.Conn(); conn != nil {
		conn.Credit(&a.up, len(p))
	}
	if end {
		a.endDetached(rank.OK, now)
	}
}

// endDetached gives the slot back. The call's memory may be in use again when it returns.
func (a *attempt) endDetached(outcome rank.Outcome, now time.Duration) {
	c := a.call
	if outcome == rank.OK || outcome == rank.Faulty {
		c.st.tally.events[eventFinished]++
	}
	c.leaveWorker(outcome, now)
	if c.ended {
		c.st.callFinished()
	}
	c.settle()
}
