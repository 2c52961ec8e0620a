package relay

import (
	"net/http"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// ending is a reason for which Cabrank itself ends a call. (A refusal is a worker's answer
// that it has no free thread, R1.)
type ending uint8

const (
	notEnded ending = iota
	endedQueueFull
	endedNoSlot
	endedNoWorker
	endedDeadlineQueued
	endedDeadline
	endedLost
	endedBroken
	endedHeaders
	endedShutdown
	endedTimeout
	endedBuffer
	endedReflectionIdle
	endedLate
	endedCycle
	endedWontFinish
	endedRate
	endedTooMany
	endedStalled
	endedReclaimed
	endedDraining
	endedConnect
	endedNoMethod
	endedToken
	endedBarred
	endedChecks
	endings // their number
)

// answer is the answer to a caller, as gRPC and as plain HTTP. The messages are part of the
// interface: operators search for them. None names an internal address.
type answer struct {
	token   string // reason label of cabrank_refusals_total
	code    grpcwire.Code
	status  int // HTTP status for requests that are not gRPC
	message string
}

func answerOf(r ending) answer {
	return [...]answer{
		endedQueueFull:      {"queue_full", grpcwire.ResourceExhausted, 503, "cabrank: queue full"},
		endedNoSlot:         {"queue_timeout", grpcwire.ResourceExhausted, 503, "cabrank: no free slot in time"},
		endedNoWorker:       {"no_worker", grpcwire.Unavailable, 503, "cabrank: no worker ready"},
		endedDeadlineQueued: {"deadline_queued", grpcwire.DeadlineExceeded, 504, "cabrank: deadline exceeded in queue"},
		endedDeadline:       {"deadline", grpcwire.DeadlineExceeded, 504, "cabrank: deadline exceeded"},
		endedLost:           {"worker_lost", grpcwire.Unavailable, 502, "cabrank: worker lost"},
		endedBroken:         {"bad_response", grpcwire.Unavailable, 502, "cabrank: bad response from worker"},
		endedHeaders:        {"headers_too_large", grpcwire.ResourceExhausted, 431, "cabrank: headers too large"},
		endedShutdown:       {"shutting_down", grpcwire.Unavailable, 503, "cabrank: shutting down"},
		endedTimeout:        {"bad_timeout", grpcwire.InvalidArgument, 400, "cabrank: bad grpc-timeout"},
		endedBuffer:         {"buffer_full", grpcwire.ResourceExhausted, 503, "cabrank: queue full"},
		endedReflectionIdle: {"reflection_idle", grpcwire.Unavailable, 504, "cabrank: reflection idle"},
		endedLate:           {"refused_late", grpcwire.Unavailable, 503, "cabrank: worker refused the call late"},
		// Not a status that callers retry: a retry would meet the same cycle.
		endedCycle:      {"call_cycle", grpcwire.FailedPrecondition, 508, "cabrank: call cycle"},
		endedWontFinish: {"deadline_shed", grpcwire.DeadlineExceeded, 504, "cabrank: deadline would pass"},
		endedRate:       {"rate_limit", grpcwire.ResourceExhausted, 429, "cabrank: rate limit"},
		endedTooMany:    {"too_many_calls", grpcwire.ResourceExhausted, 429, "cabrank: too many calls"},
		// ABORTED tells the caller to begin anew at a higher level: the same call would
		// only stall again (gRPC's status codes).
		endedStalled: {"caller_stalled", grpcwire.Aborted, 408, "cabrank: caller stalled"},
		// Not a stall: while slots are free, the caller may be as slow as it likes.
		endedReclaimed: {"slot_reclaimed", grpcwire.ResourceExhausted, 429, "cabrank: slot given to another caller"},
		endedDraining:  {"worker_draining", grpcwire.Unavailable, 503, "cabrank: worker draining"},
		endedConnect:   {"connect", grpcwire.Unimplemented, 501, "cabrank: CONNECT is not served"},
		endedNoMethod:  {"no_method", grpcwire.Unimplemented, 501, "cabrank: no worker has this method"},
		endedToken:     {"token", grpcwire.Unauthenticated, 401, "cabrank: no token that counts"},
		endedBarred:    {"not_allowed", grpcwire.PermissionDenied, 403, "cabrank: the token does not allow this method"},
		endedChecks:    {"token_checks", grpcwire.ResourceExhausted, 503, "cabrank: too many tokens to look at"},
	}[r]
}

// String returns the reason label.
func (r ending) String() string { return answerOf(r).token }

// answers holds the encoded answers of all endings.
type answers [endings]readyAnswer

// readyAnswer is an answer with its encoded blocks.
type readyAnswer struct {
	answer
	trailers []byte // gRPC; after replyHead, if nothing was sent before
	http     []byte // HEADERS for other callers
	body     []byte // and their content: the message and a newline
}

func newAnswers() (all answers) {
	for r := notEnded + 1; r < endings; r++ {
		all[r] = ready(answerOf(r))
	}
	return all
}

func ready(a answer) readyAnswer {
	tail := h2.AppendField(nil, "grpc-status", strconv.Itoa(int(a.code)))
	tail = h2.AppendField(tail, "grpc-message", string(grpcwire.AppendMessage(nil, a.message)))
	plain := h2.AppendField(nil, ":status", strconv.Itoa(a.status))
	plain = h2.AppendField(plain, "content-type", "text/plain; charset=utf-8")
	plain = h2.AppendField(plain, "content-length", strconv.Itoa(len(a.message)+1))
	if a.status == http.StatusUnauthorized {
		plain = h2.AppendField(plain, "www-authenticate", "Bearer") // RFC 9110 11.6.1
	}
	return readyAnswer{a, tail, plain, []byte(a.message + "\n")}
}

// deniedBecause returns the answer to a bad token.
func deniedBecause(why error) *readyAnswer {
	a := answerOf(endedToken)
	a.message += ": " + why.Error()
	r := ready(a)
	return &r
}

// answerOf returns the answer to the call.
func (c *call) answerOf(why ending) *readyAnswer {
	if why == endedToken && c.check != nil && c.check.denied != nil {
		return c.check.denied
	}
	return &c.st.relay.answers[why]
}

// endingFor maps the rank's reason to an ending.
func endingFor(reason rank.Reason) ending {
	switch reason {
	case rank.DeadlineExceeded:
		return endedDeadlineQueued
	case rank.WontFinish:
		return endedWontFinish
	case rank.RateLimited:
		return endedRate
	case rank.TooManyCalls:
		return endedTooMany
	case rank.NoneReady:
		return endedNoWorker
	default:
		return endedQueueFull
	}
}

// waitedTooLong returns the ending of a call that waited too long: no free slot, or no
// ready worker.
func (r *Relay) waitedTooLong() ending {
	if r.rank.Ready() == 0 {
		return endedNoWorker
	}
	return endedNoSlot
}

// fail ends a call with an answer of Cabrank's own. No other place makes one (R13).
func (c *call) fail(why ending, now time.Duration) {
	if c.ended {
		return
	}
	if why == endedDraining && c.main.via != nil {
		c.main.via.upstream.cuts++
	}
	c.leaveQueue(now)
	c.leaveWorker(outcomeOf(why), now)
	a := c.answerOf(why)
	c.code, c.httpStatus = a.code, a.status
	if c.endAt != 0 {
		c.endAt = 0
		c.setClock(now)
	}
	if c.failedAs == notEnded { // an answer that is still being delivered can fail once more
		c.failedAs = why
		c.st.tally.refused[why]++
	}
	c.noteRefused(&a.answer)
	if conn := c.down.Conn(); conn != nil && c.writeAnswer(conn, why, now) {
		c.pumpAnswer(now)
		return
	}
	c.end(now)
}

// abandoned ends a call whose caller has reset it, lost its connection or broken a rule.
func (c *call) abandoned(now time.Duration) {
	c.leaveQueue(now)
	if !c.ended {
		c.code, c.httpStatus = grpcwire.Cancelled, c.main.httpStatus
		if c.late() { // it left because its time was up
			c.code = grpcwire.DeadlineExceeded
		}
	}
	c.end(now)
}

func outcomeOf(why ending) rank.Outcome {
	switch why {
	case endedDeadline, endedShutdown, endedReflectionIdle, endedStalled, endedReclaimed, endedHeaders:
		return rank.Cancelled
	case endedLost:
		// A dying process closes its sockets one by one, the listener late: the pause
		// keeps the next call from a connection that nobody accepts.
		return rank.Lost
	case endedLate:
		return rank.RefusedByWorker
	default:
		return rank.Failed
	}
}

// writeAnswer writes the answer as gRPC or plain HTTP, depending on the caller and on what
// was sent before. It reports whether bytes or trailers are left to write when the
// caller's window allows.
func (c *call) writeAnswer(conn *h2.Conn, why ending, now time.Duration) (more bool) {
	a, behind := c.answerOf(why), c.postscript(why, now)
	c.dropPartialMessage()
	switch sent := c.down.SentHead(); {
	case c.grpc && sent && c.respSent < len(c.resp) && keepsAnswer(why):
		// The caller still gets what the worker had answered.
		c.respTail = c.st.Pool().Append(c.respTail[:0], a.trailers)
		c.respTail = c.st.Pool().Append(c.respTail, behind)
		c.respEnd = true
		return true
	case c.grpc && sent:
		conn.WriteHeaders(&c.down, true, a.trailers, behind)
	case c.grpc:
		conn.WriteHeaders(&c.down, true, c.replyHead(), a.trailers, behind)
	case sent:
		conn.Reset(&c.down, h2.InternalError)
	case c.head.Bodyless:
		conn.WriteHeaders(&c.down, true, a.http, behind)
	default:
		conn.WriteHeaders(&c.down, false, a.http, behind)
		c.resp = c.st.Pool().Append(c.resp[:0], a.body)
		c.respSent, c.respEnd = 0, true
		return true
	}
	return false
}

// replyHead returns the HEADERS of Cabrank's own answer to a gRPC call.
func (c *call) replyHead() []byte {
	if c.head.Answer != nil {
		return c.head.Answer
	}
	return c.st.relay.replyHead
}
