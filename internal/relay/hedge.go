package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
)

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
	if c.hedge != nil {
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
	if c.answered || !c.reqEnd || !c.lease.Valid() || c.finishes() {
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
	h.ticket.Request = c.ticket.Request
	h.ticket.Request.Avoid = c.lease.Endpoint()
	lease, free := st.relay.rank.AcquireFree(&h.ticket, now)
	if !free {
		st.tally.hedges[hedgeNoSlot]++
		st.recycleAttempt(h)
		return
	}
	h.previous = c.previous + 1
	conn := st.upstreamOf(lease.Endpoint()).conn(now)
	if conn == nil || !h.fits(conn) { // R15: the endpoint pauses; or the header list is too large
		st.tally.hedges[hedgeNoSlot]++
		st.release(lease, rank.NotSent, now)
		st.recycleAttempt(h)
		return
	}
	st.retryBudget.Spend(now)
	st.tally.hedges[hedgeSent]++
	c.hedge, c.hedging = h, true
	h.hasSlot(lease)
	h.start(conn, now)
}

// winRace ends the race: the caller gets this attempt's answer.
func (a *attempt) winRace(now time.Duration) {
	switch c := a.call; {
	case !c.hedging:
	case a == &c.attempt:
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
	case !c.hedging:
		return false
	case a == &c.attempt:
		c.promoteHedge(outcome, now)
	default:
		c.dropHedge(outcome, now)
	}
	return true
}

// answerInRace takes the last block of an attempt's answer while the other attempt goes on.
// It reports true if the answer drops out: the worker has no free thread (R1), or the
// failure is one that may be retried. Any other answer goes to the caller.
func (a *attempt) answerInRace(b *h2.Block, now time.Duration) bool {
	a.readStatus(b)
	if a.noThread = a.saysNoThread(b); a.noThread || a.call.head.rule.Repeats(a.code) {
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

// dropHedge ends the hedge and leaves the call to its first attempt. c.hedge stays set: it
// shows that the call has had its hedge.
func (c *call) dropHedge(outcome rank.Outcome, now time.Duration) {
	h := c.hedge
	c.hedging = false
	c.st.tally.hedges[hedgeLost]++
	if h.leaveStream() && outcome == rank.Cancelled {
		outcome = rank.NotSent
	}
	h.freeSlot(outcome, now)
	h.clearAnswer()
}

// promoteHedge ends the first attempt and puts the hedge in its place. The tickets are not
// exchanged: the rank finds the lease by its ticket.
func (c *call) promoteHedge(outcome rank.Outcome, now time.Duration) {
	h := c.hedge
	c.hedging = false
	c.st.tally.hedges[hedgeWon]++
	if c.leaveStream() && outcome == rank.Cancelled {
		outcome = rank.NotSent
	}
	c.freeSlot(outcome, now)
	c.up.Clear()
	c.clearAnswer()
	if conn := h.up.Conn(); conn != nil {
		conn.Move(&h.up, &c.up)
	}
	if h.hold.Set() {
		c.st.SetTimer(&c.hold, h.hold.At())
		c.st.StopTimer(&h.hold)
	}
	c.attemptFields, h.attemptFields = h.attemptFields, attemptFields{}
}

// newAttempt returns an empty attempt for a hedge of c.
func (st *shardState) newAttempt(c *call) *attempt {
	var a *attempt
	if last := len(st.freeAttempts) - 1; last >= 0 {
		a, st.freeAttempts = st.freeAttempts[last], st.freeAttempts[:last]
	} else {
		a = new(attempt)
	}
	a.bindTo(c)
	return a
}

// recycleAttempt keeps the memory of a finished attempt for its next use.
func (st *shardState) recycleAttempt(a *attempt) {
	a.up.Clear()
	a.call, a.attemptFields = nil, attemptFields{}
	if len(st.freeAttempts) < maxFree {
		st.freeAttempts = append(st.freeAttempts, a)
	}
}
