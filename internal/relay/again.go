package relay

import (
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
)

// The wait before a retry is random: up to firstBackOff before the first one, doubled for
// each further one, at most lastBackOff.
//
// Source: gRPC proposal A6, "Exponential Backoff".
const (
	firstBackOff = 25 * time.Millisecond
	lastBackOff  = time.Second
	// backedOff stands for that wait.
	backedOff = -1
)

// retryReason is why a call is retried.
type retryReason uint8

const (
	retryLost    retryReason = iota // its connection died with the call on it
	retryStatus                     // the worker's answer is one of the policy's codes
	retryReset                      // the worker reset its stream with such a code
	retryDrained                    // the worker was replaced before the call ended
	retryReasons
)

func (r retryReason) String() string {
	return [...]string{retryLost: "worker_lost", retryStatus: "status", retryReset: "reset", retryDrained: "worker_draining"}[r]
}

// retryDenial is why a call with a retry left is not retried.
type retryDenial uint8

const (
	deniedBudget   retryDenial = iota // the retry budget is spent
	deniedPushback                    // the worker asks for no retry, or for a longer wait than queue.timeout
	deniedDeadline                    // the deadline would pass
	retryDenials
)

func (d retryDenial) String() string {
	return [...]string{deniedBudget: "budget", deniedPushback: "pushback", deniedDeadline: "deadline"}[d]
}

// triesMade counts what a call may not do without end.
type triesMade struct {
	retries  int   // by its method's policy
	backOffs int   // retries for which the worker named no time
	refusals int   // answers of workers without a free thread
	turned   int   // times that a worker turned it away unseen, without refusals
	after    cause // why the next attempt is made
}

// retryAnswer retries a call that was answered with one of its policy's codes. It reports
// whether it did: then the caller does not get this answer.
func (c *call) retryAnswer(b *h2.Block, now time.Duration) bool {
	if !c.hasRetry() || !c.head.Rule.Repeats(c.main.code) {
		return false
	}
	pause, asked := pushbackIn(b)
	switch {
	case pause < 0 || pause > c.st.relay.settings().QueueTimeout:
		c.st.tally.retriesDenied[deniedPushback]++
		return false
	case asked:
		c.backOffs = 0 // A6: later retries begin with the shortest wait again
	default:
		pause = backedOff
	}
	return c.retry(retryStatus, pause, c.main.verdict(), now)
}

// hasRetry reports whether the policy allows another retry and the call can be replayed (R3).
func (c *call) hasRetry() bool {
	rule := c.head.Rule
	return rule != nil && c.retries < rule.Retries && c.replayable() && c.main.lease.Valid()
}

// pushbackIn returns the wait before a retry that an answer asks for, negative for no retry,
// and whether it asks.
//
// Source: gRPC proposal A6, "Pushback".
func pushbackIn(b *h2.Block) (wait time.Duration, asked bool) {
	field, found := b.Watched(head.FieldPushback)
	if !found {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(field.Value), 10, 32)
	if err != nil {
		return -1, true
	}
	return time.Duration(ms) * time.Millisecond, true
}

// backOff returns the wait before the next attempt, with full jitter: calls that failed
// together do not come back together.
func (c *call) backOff() time.Duration {
	longest := min(firstBackOff<<c.backOffs, lastBackOff)
	c.backOffs++
	return time.Duration(c.st.relay.settings().Random() * float64(longest))
}

// retry ends a failed attempt and schedules the next one, if the policy, the deadline and the
// budget allow it: the budget is for outages, not for what Cabrank takes from a worker. It
// reports whether it did.
func (c *call) retry(why retryReason, pause time.Duration, outcome rank.Outcome, now time.Duration) bool {
	if !c.hasRetry() {
		return false
	}
	if pause == backedOff {
		pause = c.backOff()
	}
	switch {
	case c.deadline != 0 && now+pause >= c.deadline:
		c.st.tally.retriesDenied[deniedDeadline]++
		return false
	case why == retryDrained:
	case !c.st.retryBudget.Allows(now):
		c.st.tally.retriesDenied[deniedBudget]++
		return false
	default:
		c.st.retryBudget.Spend(now)
	}
	c.st.tally.retries[why]++
	from := c.main.lease.Endpoint()
	c.main.leaveStream()
	c.main.up.Clear()
	c.releaseLease(outcome, now)
	c.main.clearAnswer()
	c.main.ticket.Request.Avoid = from
	c.after = afterFailure
	c.retries++
	c.main.previous++
	c.pause(callPausing, now+pause, now)
	return true
}

// pause makes a call without a worker wait, as callPausing or callMoving.
func (c *call) pause(as callState, until, now time.Duration) {
	c.become(as)
	c.resumeAt = max(until, 1) // 0 is no time for setClock
	c.count()
	c.setClock(now)
}

// resume brings such a call back to the rank: to the tail of the queue with a new wait,
// because it has run, or to the head with its old wait if no worker has looked at it.
func (c *call) resume(now time.Duration) {
	c.leaveWaiting()
	unseen := c.state == callMoving
	c.become(callNew)
	if unseen {
		if lease, granted := c.rejoin(now); granted {
			c.send(lease, now)
		}
		return
	}
	c.waitUntil = now + c.st.relay.settings().QueueTimeout
	c.main.ticket.Request.Until = c.waitUntil
	lease, reply, reason := c.st.relay.rank.Retry(&c.main.ticket, c, now)
	c.replied(lease, reply, reason, now)
}

// A hedge is a second attempt of a call beside the first. It is made when the first has no
// answer for long, and only in a slot that no other call wants. The first answer that
// reaches the caller wins, and the other attempt is cancelled. A call has at most one
// hedge.
//
// Source: gRPC proposal A6, "Hedging Policy".

// hedgeSamples is how many runs of a method must be known before HedgeAuto uses its own
// times.
const hedgeSamples = 20

// hedgeResult is the result of a hedge, or why none was made.
type hedgeResult uint8

const (
	hedgeSent     hedgeResult = iota // it was sent; it is won, lost, or under way
	hedgeWon                         // the caller got its answer, or it outlived the first attempt
	hedgeLost                        // the first attempt answered, or it failed itself, or the call ended
	hedgeNoSlot                      // none was sent: no other endpoint had a free slot and could be reached, or somebody waited
	hedgeNoBudget                    // none was sent: too many retries and hedges for the calls there are
	hedgeResults
)

func (r hedgeResult) String() string {
	return [...]string{
		hedgeSent: "sent", hedgeWon: "won", hedgeLost: "lost", hedgeNoSlot: "no_slot", hedgeNoBudget: "no_budget",
	}[r]
}

// hedgeLate: with HedgeAuto a hedge is due after so many times the method's p95. At the p95
// itself one call in twenty would be late, and hedging them all is 4 % more work; at twice
// the p95 it is one in 400, if run times are distributed exponentially.
const hedgeLate = 2

// planHedge sets when a call that starts now gets a hedge.
func (c *call) planHedge(rule *stats.MethodRule, now time.Duration) {
	c.hedgeAt = 0
	if c.hedged {
		return
	}
	after := rule.HedgeAfter
	if after == stats.HedgeAuto && c.method != nil {
		if e := c.method.InRank.Estimate(); e.Samples >= hedgeSamples {
			after = hedgeLate * e.P95
		}
	}
	if after > 0 {
		c.hedgeAt = now + after
	}
}

// mayHedge reports whether a second attempt can be made: the whole request is here and
// kept, and no answer has begun.
func (c *call) mayHedge() bool {
	if c.main.answered || !c.reqEnd || !c.main.lease.Valid() || c.finishes() {
		return false // with on_cancel: finish the losing attempt could not be cancelled
	}
	c.trimRequest()
	// The kept bytes stay until the race is over.
	return c.replayable() && c.kept == cap(c.req)
}

// startHedge sends the call a second time, if it has no answer and a slot is to spare.
func (c *call) startHedge(now time.Duration) {
	c.hedgeAt = 0
	c.setClock(now)
	if !c.mayHedge() {
		return
	}
	st := c.st
	if !st.retryBudget.Allows(now) {
		st.tally.hedges[hedgeNoBudget]++
		return
	}
	h := st.newAttempt(c)
	h.ticket.Request = c.main.ticket.Request
	h.ticket.Request.Avoid = c.main.lease.Endpoint()
	lease, free := st.relay.rank.AcquireFree(&h.ticket, now)
	if !free {
		st.tally.hedges[hedgeNoSlot]++
		st.recycleAttempt(h)
		return
	}
	h.previous = c.main.previous + 1
	conn := st.upstreamOf(lease.Endpoint()).conn(now)
	if conn == nil || !h.fits(conn) { // R15: the endpoint pauses; or the header list is too large
		st.tally.hedges[hedgeNoSlot]++
		st.release(lease, rank.NotSent, now)
		st.recycleAttempt(h)
		return
	}
	st.retryBudget.Spend(now)
	st.tally.hedges[hedgeSent]++
	c.hedge, c.hedged = h, true
	h.hasSlot(lease)
	h.start(conn, now)
}

// winRace ends the race: the caller gets this attempt's answer.
func (a *attempt) winRace(now time.Duration) {
	switch c := a.call; {
	case c.hedge == nil:
	case a == c.main:
		c.dropHedge(rank.Cancelled, now)
	default:
		c.promoteHedge(rank.Cancelled, now)
	}
}

// failInRace ends a failed attempt while the other goes on. It reports false if the call has
// no other attempt.
func (a *attempt) failInRace(outcome rank.Outcome, now time.Duration) bool {
	c := a.call
	switch {
	case c.hedge == nil:
		return false
	case a == c.main:
		c.promoteHedge(outcome, now)
	default:
		c.dropHedge(outcome, now)
	}
	return true
}

// dropsOut reports whether an attempt with its whole answer leaves the race to the other one:
// the worker has no free thread (R1), or the failure is one that may be retried. Any other
// answer goes to the caller.
func (a *attempt) dropsOut(now time.Duration) bool {
	if a.call.hedge != nil && (a.noThread || a.call.head.Rule.Repeats(a.code)) {
		return a.failInRace(a.verdict(), now)
	}
	a.winRace(now)
	return false
}

// resetInRace takes a RST_STREAM while the other attempt goes on.
func (a *attempt) resetInRace(code h2.ErrCode, broken bool, now time.Duration) {
	switch {
	case broken:
		a.failInRace(rank.Failed, now)
	case code == h2.RefusedStream:
		a.call.st.tally.events[eventRefused]++
		a.failInRace(rank.RefusedByWorker, now)
	default:
		a.via.complaints++
		a.failInRace(rank.Failed, now)
	}
}

// dropHedge ends the hedge and leaves the call to its main attempt.
func (c *call) dropHedge(outcome rank.Outcome, now time.Duration) {
	h := c.hedge
	c.hedge = nil
	c.st.tally.hedges[hedgeLost]++
	h.drop(outcome, now)
}

// promoteHedge ends the main attempt and puts the hedge in its place.
func (c *call) promoteHedge(outcome rank.Outcome, now time.Duration) {
	lost := c.main
	c.main, c.hedge = c.hedge, nil
	c.st.tally.hedges[hedgeWon]++
	lost.drop(outcome, now)
}

// drop ends an attempt that was beside another one.
func (a *attempt) drop(outcome rank.Outcome, now time.Duration) {
	st := a.call.st
	if a.leaveStream() && outcome == rank.Cancelled {
		outcome = rank.NotSent
	}
	a.freeSlot(outcome, now)
	st.StopTimer(&a.hold)
	st.recycleAttempt(a)
}
