package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// A hedge is a second attempt of a call beside the first, made when that has gone
// without an answer for long, and only into a slot that nobody else wants. The
// first answer that reaches the caller settles the race and the other attempt is
// cancelled. A call has at most one.
//
// Source: gRPC proposal A6, "Hedging Policy".

// hedgeSamples is how many runs of a method must have been seen before its own
// times say when its calls are late.
const hedgeSamples = 20

// hedgeResult is what became of a hedge, or why there was none.
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

// hedgeLate is after how many times the p95 of a method a hedge is due that nobody
// has named a time for: one call in twenty is beyond it once, and to send all of
// these twice is 4 % more work; beyond twice it there is one in 400 where run times
// are spread like an exponential's.
const hedgeLate = 2

// planHedge finds out when a call that starts now is due for a hedge.
func (c *call) planHedge(p *policy, now time.Duration) {
	c.hedgeAt = 0
	if c.hedge != nil {
		return
	}
	after := p.hedgeAfter
	if p.hedgeAuto && c.method != nil {
		if e := c.learned().Estimate(); e.Samples >= hedgeSamples {
			after = hedgeLate * e.P95
		}
	}
	if after > 0 {
		c.hedgeAt = now + after
	}
}

// mayHedge reports whether a second attempt would be the same as the first: the
// request is here as a whole and kept, and nothing has come back.
func (c *call) mayHedge() bool {
	if c.answered || !c.reqEnd || !c.lease.Valid() || c.finishes() {
		return false // with on_cancel: finish nobody could be told that it has lost
	}
	c.trimRequest()
	// What is kept stays until the race is over.
	return c.replayable() && c.kept == cap(c.req)
}

// startHedge sends the call a second time, if it has gone without an answer and
// there is a slot to spare.
func (c *call) startHedge(now time.Duration) {
	c.hedgeAt = 0
	c.setClock(now)
	if !c.mayHedge() {
		return
	}
	st := c.st
	if !st.mayTry(now) {
		st.stats.hedges[hedgeNoBudget]++
		return
	}
	h := st.newAttempt(c)
	h.ticket.Request = c.ticket.Request
	h.ticket.Request.Avoid = c.lease.Endpoint()
	lease, free := st.relay.rank.AcquireFree(&h.ticket, now)
	if !free {
		st.stats.hedges[hedgeNoSlot]++
		st.recycleAttempt(h)
		return
	}
	h.previous = c.previous + 1
	conn := st.upstreamOf(lease.Endpoint()).conn(now)
	if conn == nil || !h.fits(conn) { // R15: the endpoint pauses; or it takes no such call
		st.stats.hedges[hedgeNoSlot]++
		st.release(lease, rank.NotSent, now)
		st.recycleAttempt(h)
		return
	}
	st.relay.retryBudget.spend(now)
	st.stats.hedges[hedgeSent]++
	c.hedge, c.hedging = h, true
	h.hasSlot(lease)
	h.start(conn, now)
}

// choose ends the race: the caller gets what the attempt answers.
func (a *attempt) choose(now time.Duration) {
	switch c := a.call; {
	case !c.hedging:
	case a == &c.attempt:
		c.dropHedge(rank.Cancelled, now)
	default:
		c.succeed(rank.Cancelled, now)
	}
}

// loses ends an attempt that has failed while another one goes on. It reports
// false if there is no other one.
func (a *attempt) loses(outcome rank.Outcome, now time.Duration) bool {
	c := a.call
	switch {
	case !c.hedging:
		return false
	case a == &c.attempt:
		c.succeed(outcome, now)
	default:
		c.dropHedge(outcome, now)
	}
	return true
}

// givesWay takes the last block of an attempt's answer while another one goes on.
// If it says that the worker has no free thread (R1), or is a failure after which
// the call may be tried again, the caller does not hear of it, nor does the other
// attempt. Any other answer is the caller's.
func (a *attempt) givesWay(b *h2.Block, now time.Duration) bool {
	a.readStatus(b)
	if a.noThread = a.saysNoThread(b); a.noThread || a.call.form.policy.on(a.code) {
		return a.loses(a.verdict(), now)
	}
	a.choose(now)
	return false
}

// resetInRace takes a RST_STREAM while another attempt goes on.
func (a *attempt) resetInRace(code h2.ErrCode, broken bool, now time.Duration) {
	switch {
	case broken:
		a.loses(rank.Failed, now)
	case code == h2.RefusedStream:
		a.call.st.stats.refusedByWorker++
		a.loses(rank.RefusedByWorker, now)
	default:
		a.via.complaints++
		a.loses(rank.Failed, now)
	}
}

// dropHedge ends the hedge and leaves the call to its first attempt. The memory
// stays with the call, as a sign that it has had its hedge.
func (c *call) dropHedge(outcome rank.Outcome, now time.Duration) {
	h := c.hedge
	c.hedging = false
	c.st.stats.hedges[hedgeLost]++
	if h.leaveStream() && outcome == rank.Cancelled {
		outcome = rank.NotSent
	}
	h.freeSlot(outcome, now)
	h.forget()
}

// succeed ends the first attempt and puts the hedge in its place. The ticket stays
// where it is: the rank knows the lease by it.
func (c *call) succeed(outcome rank.Outcome, now time.Duration) {
	h := c.hedge
	c.hedging = false
	c.st.stats.hedges[hedgeWon]++
	if c.leaveStream() && outcome == rank.Cancelled {
		outcome = rank.NotSent
	}
	c.freeSlot(outcome, now)
	c.up.Clear()
	c.forget()
	if conn := h.up.Conn(); conn != nil {
		conn.Move(&h.up, &c.up)
	}
	if h.hold.Set() {
		c.st.SetTimer(&c.hold, h.hold.At())
		c.st.StopTimer(&h.hold)
	}
	c.effort, h.effort = h.effort, effort{}
}

// newAttempt returns an attempt in its initial state, for a second one of c.
func (st *stand) newAttempt(c *call) *attempt {
	var a *attempt
	if last := len(st.freeAttempts) - 1; last >= 0 {
		a, st.freeAttempts = st.freeAttempts[last], st.freeAttempts[:last]
	} else {
		a = new(attempt)
	}
	a.belongTo(c)
	return a
}

// recycleAttempt takes back an attempt of which nothing is left.
func (st *stand) recycleAttempt(a *attempt) {
	a.up.Clear()
	a.call, a.effort = nil, effort{}
	if len(st.freeAttempts) < maxFree {
		st.freeAttempts = append(st.freeAttempts, a)
	}
}
