package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/shard"
)

// callState is the step that a call has reached.
type callState uint8

const (
	callNew       callState = iota // its HEADERS are being read, or it is between two attempts
	callGathering                  // it waits for the beginning of its request, R9, or for the check of its token
	callQueued                     // it waits in the rank
	callPausing                    // an attempt has failed; it waits for the next one
	callMoving                     // workers have turned it away unseen; it waits before it moves on
	callRunning                    // it has a lease (or needs none) and a stream to a worker
	callLocal                      // Cabrank answers it
	callDetached                   // nobody waits for the worker's answer, and the worker may finish, R5
	callOver                       // the worker is done with it; the caller may still be reading
)

func (s callState) String() string {
	return [...]string{
		callNew: "new", callGathering: "gathering", callQueued: "queued", callPausing: "pausing", callMoving: "moving",
		callRunning: "running", callLocal: "local", callDetached: "detached", callOver: "over",
	}[s]
}

// leadsTo reports whether a call in state s may become next. Any call may be over at once: its
// caller leaves, or Cabrank answers it. docs/life-of-a-call.md has the same table.
func (s callState) leadsTo(next callState) bool {
	return next == callOver || [...]uint16{
		callNew:       1<<callGathering | 1<<callQueued | 1<<callMoving | 1<<callRunning | 1<<callLocal,
		callGathering: 1<<callNew | 1<<callQueued | 1<<callRunning,
		callQueued:    1 << callRunning,
		callPausing:   1 << callNew,
		callMoving:    1 << callNew,
		callRunning:   1<<callNew | 1<<callPausing | 1<<callDetached,
		callOver:      0,
	}[s]&(1<<next) != 0
}

// become changes the call's state. No other place does.
func (c *call) become(next callState) {
	if checkStates && !c.state.leadsTo(next) {
		panic("internal error: relay: a call that is " + c.state.String() + " became " + next.String()) //nolint:forbidigo // a broken invariant
	}
	c.state = next
}

// waits reports whether a call waits here, without a worker.
func (s callState) waits() bool {
	switch s {
	case callGathering, callQueued, callPausing, callMoving:
		return true
	default:
		return false
	}
}

// left reports whether no worker serves a call for its caller any more.
func (s callState) left() bool { return s >= callDetached }

// due is when something happens to a call; the clock is set to the first of these.
type due struct {
	deadline  time.Duration // 0: none
	patience  time.Duration // end of the wait for its request, 0: no end, R9
	waitUntil time.Duration // end of queue.timeout
	resumeAt  time.Duration // when a call that pauses or moves goes on
	hedgeAt   time.Duration // when a hedge is due, 0: never
	endAt     time.Duration // end of the wait for the rest of a message, see endAfterMessage; 0: no wait
}

// Expired implements shard.Expirer.
func (c *call) Expired(_ *shard.Timer, now time.Duration) {
	switch {
	case c.deadline != 0 && now >= c.deadline:
		if c.state == callQueued || c.state == callGathering {
			c.fail(endedDeadlineQueued, now)
		} else {
			c.fail(endedDeadline, now)
		}
	case c.endAt != 0 && now >= c.endAt:
		c.fail(c.endReason, now)
	case c.reflection:
		c.fail(endedReflectionIdle, now)
	case c.state == callGathering:
		c.patienceEnds(now)
	case c.state == callPausing, c.state == callMoving:
		c.resume(now)
	case c.state == callRunning && c.hedgeAt != 0 && now >= c.hedgeAt:
		c.startHedge(now)
	case c.state == callQueued:
		c.fail(c.st.relay.waitedTooLong(), now)
	}
}

// setClock sets the call's one timer to the next event that may end the call.
func (c *call) setClock(now time.Duration) {
	at := c.deadline
	switch {
	case c.state == callQueued && (at == 0 || c.waitUntil < at):
		at = c.waitUntil
	case c.state == callGathering && c.patience != 0 && (at == 0 || c.patience < at):
		at = c.patience
	case (c.state == callPausing || c.state == callMoving) && (at == 0 || c.resumeAt < at):
		at = c.resumeAt
	case c.endAt != 0 && (at == 0 || c.endAt < at):
		at = c.endAt
	case c.hedgeAt != 0 && c.state == callRunning && (at == 0 || c.hedgeAt < at):
		at = c.hedgeAt
	case c.reflection && (at == 0 || now+reflectionIdle < at):
		at = now + reflectionIdle
	}
	if at == 0 {
		c.st.StopTimer(&c.clock)
		return
	}
	if !c.clock.Set() || c.clock.At() != at {
		c.st.SetTimer(&c.clock, at)
	}
}
