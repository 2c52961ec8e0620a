package relay

import (
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// The wait before another attempt is random, up to firstBackOff before the first
// one, doubled for each further one, at most lastBackOff.
//
// Source: gRPC proposal A6, "Exponential Backoff".
const (
	firstBackOff = 25 * time.Millisecond
	lastBackOff  = time.Second
)

// retryReason is why a call is tried again.
type retryReason uint8

const (
	retryLost    retryReason = iota // its connection died with the call on it
	retryStatus                     // the worker's answer is one of the policy's codes
	retryReset                      // the worker reset its stream, which is as much
	retryDrained                    // the worker was to go, and the call had not ended in time
	retryReasons
)

func (r retryReason) String() string {
	return [...]string{retryLost: "worker_lost", retryStatus: "status", retryReset: "reset", retryDrained: "worker_draining"}[r]
}

// retryDenial is why a call is not tried again that has a retry left.
type retryDenial uint8

const (
	deniedBudget   retryDenial = iota // too many retries and hedges for the calls there are
	deniedPushback                    // the worker has asked for none, or for a longer wait than calls may have
	deniedDeadline                    // its time would be up
	retryDenials
)

func (d retryDenial) String() string {
	return [...]string{deniedBudget: "budget", deniedPushback: "pushback", deniedDeadline: "deadline"}[d]
}

// retryAnswer has a call tried again that was answered with one of the codes of
// its method's policy. It reports whether that answer is done with: the caller
// does not hear of it.
func (c *call) retryAnswer(b *h2.Block, now time.Duration) bool {
	if !c.hasRetry() || !c.head.policy.on(c.code) {
		return false
	}
	pause, asked := pushbackIn(b)
	switch {
	case pause < 0 || pause > c.st.relay.settings().QueueTimeout:
		c.st.stats.retriesDenied[deniedPushback]++
		return false
	case asked:
		c.backOffs = 0 // A6: what follows begins with the shortest wait again
	default:
		pause = c.backOff()
	}
	return c.scheduleRetry(retryStatus, pause, c.verdict(), now)
}

// retryReset does so for an answer that is none: RST_STREAM with an error code
// that callers take for such a code.
func (c *call) retryReset(code h2.ErrCode, now time.Duration) bool {
	return c.hasRetry() && c.head.policy.on(codeOfReset(code)) &&
		c.scheduleRetry(retryReset, c.backOff(), rank.Failed, now)
}

// retryLost does so for a call that may have run on a worker that is gone.
func (c *call) retryLost(now time.Duration) bool {
	return c.hasRetry() && c.scheduleRetry(retryLost, c.backOff(), outcomeOf(endedLost), now)
}

// retryDrained does so for a call that Cabrank itself takes from its worker. That
// adds no load in an outage, which is what the budget is there for, nor does
// anything speak for a wait.
func (c *call) retryDrained(now time.Duration) bool {
	return c.hasRetry() && c.scheduleRetry(retryDrained, 0, rank.Failed, now)
}

// hasRetry reports whether the call may be sent once more by its method's policy,
// and can (R3).
func (c *call) hasRetry() bool {
	p := c.head.policy
	return p != nil && c.retries < p.retries && c.replayable() && c.lease.Valid()
}

// pushbackIn returns the wait that an answer asks for before another attempt,
// and whether it does. It is negative if there is to be none.
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

// backOff returns how long the next attempt waits. Full jitter: calls that failed
// together do not come back together.
func (c *call) backOff() time.Duration {
	longest := min(firstBackOff<<c.backOffs, lastBackOff)
	c.backOffs++
	return time.Duration(c.st.relay.settings().Random() * float64(longest))
}

// scheduleRetry ends an attempt that has failed and has the call wait for its next one,
// if there is time for it and the budget allows it.
func (c *call) scheduleRetry(why retryReason, pause time.Duration, outcome rank.Outcome, now time.Duration) bool {
	switch {
	case c.deadline != 0 && now+pause >= c.deadline:
		c.st.stats.retriesDenied[deniedDeadline]++
		return false
	case why == retryDrained:
	case !c.st.mayTry(now):
		c.st.stats.retriesDenied[deniedBudget]++
		return false
	default:
		c.st.relay.retryBudget.spend(now)
	}
	c.st.stats.retries[why]++
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

// pauseUntil has a call without a worker wait for its next attempt.
func (c *call) pauseUntil(at, now time.Duration) {
	c.state, c.resumeAt = callPausing, max(at, 1) // 0 would be never
	c.count()
	c.setClock(now)
}

// resume brings a call that has paused to the rank again: to the tail, for it
// has had a turn, and with a wait of its own. One that nobody has looked at has had
// none.
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
