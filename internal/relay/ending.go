package relay

import (
	"net/http"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// ending is a reason for which cabrank itself ends a call. (A refusal is a
// worker's word that it has no free thread, R1.)
type ending uint8

const (
	endedQueueFull ending = iota
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
	endedAsideIdle
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
	endings // how many there are
)

// answer is what a caller is told, in either form. The messages are part of
// the interface: operators search for them. None names an internal address.
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
		endedAsideIdle:      {"reflection_idle", grpcwire.Unavailable, 504, "cabrank: reflection idle"},
		endedLate:           {"refused_late", grpcwire.Unavailable, 503, "cabrank: worker refused the call late"},
		// Not a status that callers try again: another turn meets the same cycle.
		endedCycle:      {"call_cycle", grpcwire.FailedPrecondition, 508, "cabrank: call cycle"},
		endedWontFinish: {"deadline_shed", grpcwire.DeadlineExceeded, 504, "cabrank: deadline would pass"},
		endedRate:       {"rate_limit", grpcwire.ResourceExhausted, 429, "cabrank: rate limit"},
		endedTooMany:    {"too_many_calls", grpcwire.ResourceExhausted, 429, "cabrank: too many calls"},
		// ABORTED is for what the caller has to begin anew from further up: sending
		// the same once more would only stall again (gRPC's status codes).
		endedStalled: {"caller_stalled", grpcwire.Aborted, 408, "cabrank: caller stalled"},
		// Not a stall: with a slot to spare for it, it may be as slow as it likes.
		endedReclaimed: {"slot_reclaimed", grpcwire.ResourceExhausted, 429, "cabrank: slot given to another caller"},
		endedDraining:  {"worker_draining", grpcwire.Unavailable, 503, "cabrank: worker draining"},
		endedConnect:   {"connect", grpcwire.Unimplemented, 501, "cabrank: CONNECT is not served"},
		endedNoMethod:  {"no_method", grpcwire.Unimplemented, 501, "cabrank: no worker has this method"},
		endedToken:     {"token", grpcwire.Unauthenticated, 401, "cabrank: no token that counts"},
		endedBarred:    {"not_allowed", grpcwire.PermissionDenied, 403, "cabrank: the token does not allow this method"},
		endedChecks:    {"token_checks", grpcwire.ResourceExhausted, 503, "cabrank: too many tokens to look at"},
	}[r]
}

// answers holds the ready-made blocks of all endings.
type answers [endings]readyAnswer

// readyAnswer is an answer with its blocks.
type readyAnswer struct {
	answer
	trailers []byte // gRPC; behind replyHead, if nothing was sent before
	http     []byte // HEADERS for other callers
	body     []byte // and what follows them: the message and a newline
}

func newAnswers() (all answers) {
	for r := range endings {
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

// deniedBecause says what is wrong with a token.
func deniedBecause(why error) *readyAnswer {
	a := answerOf(endedToken)
	a.message += ": " + why.Error()
	r := ready(a)
	return &r
}

// answerOf returns what the call is told.
func (c *call) answerOf(why ending) *readyAnswer {
	if why == endedToken && c.check != nil && c.check.denied != nil {
		return c.check.denied
	}
	return &c.st.relay.answers[why]
}

// endingFor translates the rank's reason.
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

// waitedTooLong tells a full house from an empty one.
func (r *Relay) waitedTooLong() ending {
	if r.rank.Ready() == 0 {
		return endedNoWorker
	}
	return endedNoSlot
}

// fail ends a call with an answer of cabrank's own. It is the only place that
// makes one (R13).
func (c *call) fail(why ending, now time.Duration) {
	if c.done {
		return
	}
	if why == endedDraining && c.via != nil {
		c.via.upstream.cuts++
	}
	c.leaveQueue(now)
	c.leaveWorker(outcomeOf(why), now)
	a := c.answerOf(why)
	c.code, c.httpStatus = a.code, a.status
	if c.partAt != 0 {
		c.partAt = 0
		c.setClock(now)
	}
	if !c.failed { // an answer that is still being delivered can fail once more
		c.failed, c.failedAs = true, why
		c.st.stats.refused[why]++
	}
	c.notTaken(&a.answer)
	if conn := c.down.Conn(); conn != nil && c.tell(conn, why, now) {
		c.pumpAnswer(now)
		return
	}
	c.finish(now)
}

func outcomeOf(why ending) rank.Outcome {
	switch why {
	case endedDeadline, endedShutdown, endedAsideIdle, endedStalled, endedReclaimed, endedHeaders:
		return rank.Cancelled
	case endedLost:
		// A dying process closes one socket after the other, its listener late:
		// the pause keeps the next call from a connection that nobody accepts.
		return rank.Lost
	case endedLate:
		return rank.RefusedByWorker
	default:
		return rank.Failed
	}
}

// tell writes the answer in the form that the caller understands, given what
// was sent before. It reports whether bytes or trailers of the call are left to
// be written as the caller's window allows.
func (c *call) tell(conn *h2.Conn, why ending, now time.Duration) (more bool) {
	a, behind := c.answerOf(why), c.postscript(why, now)
	c.dropPart()
	switch sent := c.down.SentHead(); {
	case c.grpc && sent && c.respSent < len(c.resp) && keepsAnswer(why):
		// What the worker had answered before it was lost is the caller's.
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
	case c.form.bodyless:
		conn.WriteHeaders(&c.down, true, a.http, behind)
	default:
		conn.WriteHeaders(&c.down, false, a.http, behind)
		c.resp = c.st.Pool().Append(c.resp[:0], a.body)
		c.respSent, c.respEnd = 0, true
		return true
	}
	return false
}
