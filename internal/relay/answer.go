package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

const (
	// holdFor is how long response HEADERS without metadata wait for the block behind
	// them (R2), where the answer may have the call sent again and the worker is known to
	// fail in two blocks. An idle machine needs 2 ms; on a busy one a Ruby worker took
	// more than 20 ms between its two writes. An ordinary reply has its first message
	// right behind its HEADERS and does not wait; any other gets late HEADERS, never
	// late messages.
	holdFor = 250 * time.Millisecond
	// holdBriefly is the same for HEADERS with metadata of the application, which
	// failures rarely have, and for all HEADERS until a worker has failed in two blocks.
	holdBriefly = 2 * time.Millisecond
	// plainFields is the largest number of fields in HEADERS without metadata:
	// :status, content-type, grpc-encoding, grpc-accept-encoding.
	plainFields = 4
	// clockSkew is how much earlier a deadline may pass at a peer: it was told the
	// time left, not the instant.
	clockSkew = 2 * time.Millisecond
)

// answerBytes are the DATA and trailers of an answer that wait for the caller's window.
type answerBytes struct {
	resp     []byte
	respSent int
	respTail []byte // trailers that follow resp
	boundary grpcwire.Boundary
	ahead    int // bytes of resp for which the worker has credit back; see absorb
}

// workerSide gets the frames of upstream connections (h2.Handler).
type workerSide struct{ st *shardState }

// Accept implements h2.Handler; workers open no streams.
func (workerSide) Accept(*h2.Conn, *h2.Block) *h2.Stream { return nil }

// Headers implements h2.Handler.
func (h workerSide) Headers(s *h2.Stream, b *h2.Block, end bool) {
	a, now := s.Owner.(*attempt), h.st.Now()
	if uc := a.via; uc != nil && uc.heard != now && a.alive(b, end) {
		a.noteAnswer(now)
	}
	if !a.answered {
		a.call.work.first = now - a.lease.At()
	}
	if a.call.reflection {
		a.call.setClock(now) // its idle time begins anew
	}
	switch {
	case a.call.state == callDetached:
		a.detachedHeaders(b, end, now)
	case end:
		a.readStatus(b)
		a.noThread = a.saysNoThread(b)
		if !a.dropsOut(now) {
			a.call.answer(b, now)
		}
	case b.Status < 200:
		// 1xx is between two neighbors and commits nothing (RFC 9113 8.1, R13).
	default:
		a.answerBegins(b, now)
	}
}

// TooLarge implements h2.Handler.
func (h workerSide) TooLarge(s *h2.Stream, end bool) {
	a, now := s.Owner.(*attempt), h.st.Now()
	switch {
	case a.call.state == callDetached:
		a.detachedData(nil, end, now)
	case !a.failInRace(rank.Failed, now):
		a.call.leaveWorker(rank.Failed, now) // the worker's fault, not the caller's
		a.call.fail(endedHeaders, now)
	}
}

// Data implements h2.Handler.
func (h workerSide) Data(s *h2.Stream, p []byte, end bool) {
	a, now := s.Owner.(*attempt), h.st.Now()
	a.noteAnswer(now)
	if a.call.state == callDetached {
		a.detachedData(p, end, now)
		return
	}
	if a.held != nil {
		a.stopHolding()
	}
	a.call.answerData(p, end, now)
}

// Reset implements h2.Handler.
func (h workerSide) Reset(s *h2.Stream, code h2.ErrCode, broken bool) {
	a, now := s.Owner.(*attempt), h.st.Now()
	if code != h2.RefusedStream && !a.call.late() {
		a.noteAnswer(now)
	}
	switch {
	case a.call.state == callDetached:
		a.detachedReset(code, now)
	case a.call.hedge != nil:
		a.resetInRace(code, broken, now)
	default:
		a.call.workerReset(code, broken, now)
	}
}

// Writable implements h2.Handler.
func (h workerSide) Writable(s *h2.Stream) { s.Owner.(*attempt).pumpRequest() }

// Lost implements h2.Handler: the connection died.
func (h workerSide) Lost(s *h2.Stream, sent bool) {
	a, now := s.Owner.(*attempt), h.st.Now()
	if a.via != nil {
		a.via.noteEnd(now) // before its calls move: they must not dial again at once
	}
	a.workerLost(sent, now)
}

// GoAway implements h2.Handler: the worker never looked at streams above last, so
// they move to another connection or worker (R4).
func (h workerSide) GoAway(conn *h2.Conn, last uint32, code h2.ErrCode) {
	now, uc := h.st.Now(), conn.Owner.(*upstreamConn)
	unseen := uc.attempts(func(a *attempt) bool { return a.up.ID() > last })
	if len(unseen) > 0 {
		uc.upstream.turnsAway(now)
	}
	for a := range uc.open(unseen) {
		a.workerLost(false, now)
	}
	uc.upstream.pingLessOften(code)
	uc.retire()
}

// Pong implements h2.Handler.
func (workerSide) Pong(*h2.Conn, [8]byte) {}

// answerBegins takes response HEADERS with more to follow. It holds them back if they
// may be the first half of a failure in two blocks (R2).
func (a *attempt) answerBegins(b *h2.Block, now time.Duration) {
	a.readStatus(b)
	a.call.noteOrder()
	if a.mayMove() && a.up.LocalDone() {
		a.holdBack(b, now)
		return
	}
	c := a.call
	a.winRace(now)
	c.commit()
	c.toCaller(b.Enc, false)
}

// commit notes that the caller has seen part of the answer: the call cannot move
// any more (R3).
func (c *call) commit() {
	c.spent = true
	c.st.heads.ReleaseBlock(c.head)
	c.trimRequest()
}

// passTrailers passes on the end of the answer, behind the bytes that wait for the caller.
func (c *call) passTrailers(b *h2.Block) {
	var behind []byte
	if c.st.relay.settings().Explain {
		behind = c.explanation()
	}
	if c.respSent < len(c.resp) {
		c.respTail = c.st.Pool().Append(c.respTail[:0], b.Enc)
		c.respTail = c.st.Pool().Append(c.respTail, behind)
		return
	}
	if conn := c.down.Conn(); conn != nil {
		conn.WriteHeaders(&c.down, true, b.Enc, behind)
	}
}

// answerData writes bytes of the answer to the caller as far as its window allows, and
// puts the rest into the call's buffer.
func (c *call) answerData(p []byte, end bool, now time.Duration) {
	if c.reflection {
		c.setClock(now)
	}
	if c.sent > 0 && len(p) > 0 && !c.goesOn && c.grpc && c.boundary.Begun() == 0 {
		c.goesOn = true
		c.st.relay.rank.GoesOn(c.main.lease, now)
	}
	c.gotData = true
	c.sent += int64(len(p))
	if c.state != callRunning {
		return
	}
	more := false // whether bytes follow the message that the caller still gets
	if c.endAt != 0 {
		if n := c.boundary.Rest(p); n < len(p) {
			p, end, more = p[:n], false, true
		}
	}
	if c.grpc {
		c.boundary.Take(p)
	}
	c.respEnd = end
	down := c.down.Conn()
	if down == nil {
		return
	}
	if c.respSent == len(c.resp) {
		n := min(down.Writable(&c.down), len(p))
		if n > 0 || (end && n == len(p)) {
			down.WriteData(&c.down, p[:n], end && n == len(p))
			c.creditWorker(n)
			c.idle = stall{}
		}
		p = p[n:]
	}
	if len(p) > 0 {
		c.resp = c.st.Pool().Append(c.resp, p)
		c.count()
		c.absorb()
		down.Want(&c.down)
	}
	switch {
	case end:
		c.workerDone(now)
		c.finishIfDelivered(now)
	case c.endAt != 0:
		c.messagePassed(more, now)
	}
}

// pumpAnswer writes waiting bytes of the answer as far as the caller's window allows.
func (c *call) pumpAnswer(now time.Duration) {
	down := c.down.Conn()
	if down == nil {
		return
	}
	for c.respSent < len(c.resp) {
		n := min(down.Writable(&c.down), len(c.resp)-c.respSent)
		if n == 0 {
			down.Want(&c.down)
			c.absorb()
			break
		}
		last := c.respEnd && c.respTail == nil && c.respSent+n == len(c.resp)
		down.WriteData(&c.down, c.resp[c.respSent:c.respSent+n], last)
		c.respSent += n
		c.creditWorker(n)
		c.idle = stall{}
	}
	c.trimAnswer()
	c.finishIfDelivered(now)
}

// trimAnswer drops the bytes that were sent. It moves the rest only if that is the
// smaller part: otherwise a caller that gives credit byte by byte would have a window's
// worth moved each time.
func (c *call) trimAnswer() {
	if 2*c.respSent < len(c.resp) {
		return
	}
	rest := copy(c.resp, c.resp[c.respSent:])
	c.resp, c.respSent = c.resp[:rest], 0
	if rest == 0 {
		c.st.Pool().Put(c.resp)
		c.resp = nil
		c.count()
	}
}

// finishIfDelivered ends the call when the caller has the whole answer.
func (c *call) finishIfDelivered(now time.Duration) {
	if !c.respEnd || c.respSent < len(c.resp) {
		return
	}
	switch conn := c.down.Conn(); {
	case conn == nil || c.down.LocalDone():
	case c.respTail != nil:
		conn.WriteHeaders(&c.down, true, c.respTail)
	default:
		conn.WriteData(&c.down, nil, true)
	}
	c.end(now)
}

func (c *call) creditWorker(n int) {
	if c.ahead > 0 {
		n = c.repay(n)
	}
	if conn := c.main.up.Conn(); conn != nil && n > 0 {
		conn.Credit(&c.main.up, n)
	}
}

// workerDone gives the slot back when the worker has answered. If the answer ends
// before the request, the worker gets no more of the request.
func (c *call) workerDone(now time.Duration) {
	c.st.StopTimer(&c.clock)
	outcome := c.main.verdict()
	c.code, c.httpStatus = c.main.code, c.main.httpStatus
	if c.main.endedByClock() {
		outcome = rank.Cancelled // the handler may still hold the thread (R5)
	}
	c.leaveWorker(outcome, now)
}

// toCaller writes a block of the answer.
func (c *call) toCaller(block []byte, end bool) {
	conn := c.down.Conn()
	if conn == nil {
		return
	}
	conn.WriteHeaders(&c.down, end, block)
}

// workerReset takes a RST_STREAM of the worker, or a breach of HTTP/2 by it.
func (c *call) workerReset(code h2.ErrCode, broken bool, now time.Duration) {
	switch {
	case c.state != callRunning:
	case c.endAt != 0:
		c.fail(c.endReason, now)
	case broken:
		c.fail(endedBroken, now)
	case code == h2.Cancel && c.late():
		// grpc-go ends a call like this when its deadline passes.
		c.fail(endedDeadline, now)
	case code == h2.RefusedStream && c.replayable():
		c.refusedStream(now)
	case code == h2.RefusedStream:
		// If it were passed on, callers would send the call again (R1, R3).
		c.fail(endedLate, now)
	default:
		c.main.code = codeOfReset(code)
		c.code, c.httpStatus = c.main.code, c.main.httpStatus
		c.main.via.complaints++
		if c.head.Rule.Repeats(c.code) && c.retry(retryReset, backedOff, rank.Failed, now) {
			return
		}
		if conn := c.down.Conn(); conn != nil {
			conn.Reset(&c.down, code)
		}
		c.leaveWorker(rank.Failed, now)
		c.end(now)
	}
}

// late reports whether the call's deadline has passed, here or at a peer. It reads the
// clock anew: the peer may have sent the frame after the shard's loop read the clock.
func (c *call) late() bool {
	return c.deadline != 0 && c.st.relay.now()+clockSkew >= c.deadline
}

// codeOfReset returns the gRPC status to which callers map an error code.
// Source: gRPC over HTTP/2, "Errors".
func codeOfReset(code h2.ErrCode) grpcwire.Code {
	switch code {
	case h2.Cancel:
		return grpcwire.Cancelled
	case h2.EnhanceYourCalm:
		return grpcwire.ResourceExhausted
	case h2.InadequateSecurity:
		return grpcwire.PermissionDenied
	default:
		return grpcwire.Internal
	}
}

func lostOutcome(sent bool) rank.Outcome {
	if !sent {
		return rank.NotSent
	}
	return outcomeOf(endedLost)
}

// workerLost takes the end of the worker's connection. The call moves only if the
// worker provably has not seen it (R4), or if the call may run twice.
func (a *attempt) workerLost(sent bool, now time.Duration) {
	switch c := a.call; {
	case a.call.state == callDetached:
		a.endDetached(lostOutcome(sent), now)
	case c.state != callRunning:
	case c.endAt != 0:
		c.fail(c.endReason, now)
	case a.failInRace(lostOutcome(sent), now):
	case !sent && c.replayable():
		c.turnedAway(now)
	case c.retry(retryLost, backedOff, lostOutcome(sent), now):
	default:
		c.work.lost = !c.main.answered
		c.fail(endedLost, now)
	}
}

// absorb lets the worker send on although the caller does not read the answer, so
// that the worker finishes and its slot becomes free (R9): the worker gets credit
// back for bytes that wait here. This credit, ahead of the caller, counts against
// three bounds:
//
//   - the call: waiting bytes and those that the worker may still send are together
//     at most Options.AbsorbBytes, or one window if that is more;
//   - the connection: half of Limits.Buffer, so that a caller with slow readers can
//     still begin new calls;
//   - the process: half of what may be buffered. While more than half of that is in
//     use, no credit is given.
//
// Credit goes out in halves of the first window, and does not make the window grow:
// only callers that read get larger windows (R11).
func (c *call) absorb() {
	conn := c.main.up.Conn()
	if conn == nil || c.respEnd {
		return
	}
	step := min(c.main.up.Window(), int(c.st.conf.up.Window)) / 2
	owed := c.main.up.Debt() // of bytes that were taken
	unpaid := len(c.resp) - c.respSent - c.ahead + owed
	if step == 0 || unpaid < step {
		return
	}
	o, cc := c.st.relay.settings(), c.caller
	room := min(o.AbsorbBytes-c.main.up.Window()-c.ahead, o.Limits.Buffer/2-cc.ahead) + owed
	n := min(unpaid, room) / step * step
	loan := max(n-owed, 0)
	if n <= 0 || c.st.relay.budget.Pressed() {
		return
	}
	if r := c.st.relay; r.absorbed.Add(int64(loan)) > r.bufferTotal()/2 {
		r.absorbed.Add(int64(-loan))
		return
	}
	c.ahead += loan
	cc.ahead += loan
	conn.Advance(&c.main.up, n)
}

// repay subtracts n bytes from the credit that was given ahead: the caller has taken
// them, or never will. It returns how many bytes were not part of that credit.
func (c *call) repay(n int) int {
	paid := min(n, c.ahead)
	if paid > 0 {
		c.ahead -= paid
		c.caller.ahead -= paid
		c.st.relay.absorbed.Add(int64(-paid))
	}
	return n - paid
}
