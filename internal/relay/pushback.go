package relay

import (
	"math"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// pushback is what Cabrank's own answer says about a retry.
//
// Source: gRPC proposal A6, "Pushback".
type pushback uint8

const (
	// pushNothing leaves the retry to the caller.
	pushNothing pushback = iota
	// pushAway asks for no retry: the deadline spans all attempts, so a retry would have
	// less time (R16).
	pushAway
	// pushDrained names the time in which the queue is expected to drain.
	pushDrained
	// pushRate names the time after which the caller may begin another call.
	pushRate
)

// pushbackName is the field in which a gRPC answer says when to retry.
const pushbackName = "grpc-retry-pushback-ms"

// pushSpread is the part by which pushbacks vary, so that callers that were refused together
// do not come back together (R16).
const pushSpread = 0.2

func pushbackOf(why ending) pushback {
	switch why {
	case endedWontFinish:
		return pushAway
	case endedQueueFull, endedBuffer:
		return pushDrained
	case endedRate:
		return pushRate
	default:
		return pushNothing
	}
}

// retryAfter returns the time after which a retry may succeed, negative if it would not, 0 if
// that is not known.
func (c *call) retryAfter(why ending, now time.Duration) time.Duration {
	var after time.Duration
	switch pushbackOf(why) {
	case pushNothing:
	case pushAway:
		return -1
	case pushDrained:
		after = c.st.relay.rank.QueueTime()
	case pushRate:
		after = c.st.relay.rank.RateWait(c.head.account(), now)
	}
	if after == 0 {
		return 0
	}
	after = spread(after, pushSpread, c.st.relay.settings().Random())
	if c.deadline != 0 && now+after >= c.deadline {
		return -1
	}
	return after
}

// postscript returns the last fields of Cabrank's own answer: when to retry, and how long the
// call waited (Options.Explain). It is valid until
// the shard's scratch is used again.
func (c *call) postscript(why ending, now time.Duration) []byte {
	block := c.st.scratch[:0]
	if after := c.retryAfter(why, now); after != 0 {
		block = c.st.appendRetry(block, after, c.grpc)
	}
	if c.st.relay.settings().Explain {
		block = c.st.appendQueueTime(block, c.waited)
	}
	c.st.scratch = block
	return block
}

// appendRetry writes grpc-retry-pushback-ms, or for other callers Retry-After
// (RFC 9110 10.2.3), which knows whole seconds only, and no word for "never".
func (st *shardState) appendRetry(block []byte, after time.Duration, grpc bool) []byte {
	switch {
	case !grpc && after < 0:
		return block
	case !grpc:
		return h2.AppendFieldBytes(block, "retry-after", appendCeil(st.digits[:0], after, time.Second))
	case after < 0:
		return h2.AppendField(block, pushbackName, "-1")
	default:
		return h2.AppendFieldBytes(block, pushbackName, appendCeil(st.digits[:0], after, time.Millisecond))
	}
}

// appendCeil writes d in whole units, rounded up: a retry before d would fail. Callers read
// 32 bits.
func appendCeil(dst []byte, d, unit time.Duration) []byte {
	return strconv.AppendInt(dst, int64(min((d+unit-1)/unit, math.MaxInt32)), 10)
}
