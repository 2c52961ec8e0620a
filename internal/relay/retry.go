package relay

import (
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// The wait before a retry is random: up to firstBackOff before the first one, doubled for
// each further one, at most lastBackOff.
//
// Source: gRPC proposal A6, "Exponential Backoff".
const (
	firstBackOff = 25 * time.Millisecond
	lastBackOff  = time.Second
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

// retryAnswer retries a call that was answered with one of its policy's codes. It reports
// whether it did: then the caller does not get this answer.
func (c *call) retryAnswer(b *h2.Block, now time.Duration) bool {
	if !c.hasRetry() || !c.head.rule.Repeats(c.code) {
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
		pause = c.backOff()
	}
	return c.scheduleRetry(retryStatus, pause, c.verdict(), now)
}

// retryReset retries a call after RST_STREAM with an error code that maps to one of its
// policy's codes.
func (c *call) retryReset(code h2.ErrCode, now time.Duration) bool {
	return c.hasRetry() && c.head.rule.Repeats(codeOfReset(code)) &&
		c.scheduleRetry(retryReset, c.backOff(), rank.Failed, now)
}

// retryLost retries a call that may have run on a worker whose connection is lost.
func (c *call) retryLost(now time.Duration) bool {
	return c.hasRetry() && c.scheduleRetry(retryLost, c.backOff(), outcomeOf(endedLost), now)
}

// retryDrained retries a call that Cabrank takes from its worker. It needs no budget, which
// is for outages, and no wait.
func (c *call) retryDrained(now time.Duration) bool {
	return c.hasRetry() && c.scheduleRetry(retryDrained, 0, rank.Failed, now)
}

// hasRetry reports whether the policy allows another retry and the call can be replayed (R3).
func (c *call) hasRetry() bool {
	rule := c.head.rule
	return rule != nil && c.retries < rule.Retries && c.replayable() && c.lease.Valid()
}

// pushbackIn returns the wait before a retry that an answer asks for, negative for no retry,
// and whether it asks.
//
// Source: gRPC proposal A6, "Pushback".
func pushbackIn(b *h2.Block) (wait time.Duration, asked bool) {
	field, found := b.Watched(fieldPushback)
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

// scheduleRetry ends a failed attempt and schedules the next one, if the deadline and the
// budget allow it. It reports whether it did.
func (c *call) scheduleRetry(why retryReason, pause time.Duration, outcome rank.Outcome, now time.Duration) bool {
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
	from := c.lease.Endpoint()
	c.leaveStream()
	c.up.Clear()
	c.releaseLease(outcome, now)
	c.clearAnswer()
	c.ticket.Request.Avoid = from
	c.retries++
	c.previous++
	c.pauseUntil(now+pause, now)
	return true
}

// pauseUntil makes a call without a worker wait for its next attempt.
func (c *call) pauseUntil(at, now time.Duration) {
	c.state, c.resumeAt = callPausing, max(at, 1) // 0 means never
	c.count()
	c.setClock(now)
}

// resume brings a paused call back to the rank: to the tail of the queue with a new wait,
// because it has run, or to the head with its old wait if no worker has looked at it.
func (c *call) resume(now time.Duration) {
	c.leaveWaiting()
	c.state, c.resumeAt = callNew, 0
	if c.pausedUnseen {
		c.pausedUnseen = false
		if lease, granted := c.rejoin(now); granted {
			c.run(lease, now)
		}
		return
	}
	c.waitUntil = now + c.st.relay.settings().QueueTimeout
	c.ticket.Request.Until = c.waitUntil
	lease, verdict, reason := c.st.relay.rank.Retry(&c.ticket, c, now)
	if verdict == rank.Granted {
		c.run(lease, now)
		return
	}
	c.notGranted(verdict, reason, now)
}
