package relay

import (
	"math"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
)

const (
	// The fields that tell callers how their call was served (Options.Explain).
	queueField  = "cabrank-queue-ms"
	workerField = "cabrank-worker"
	// pushSpread is the part by which pushbacks vary, so that callers that were refused
	// together do not come back together (R16).
	pushSpread = 0.2
)

// retryAfter returns the time after which a retry may succeed, negative if it would not, 0 if
// that is not known and the retry is left to the caller.
func (c *call) retryAfter(why ending, now time.Duration) (after time.Duration) {
	switch why {
	case endedWontFinish: // the deadline spans all attempts, so a retry would have less time (R16)
		return -1
	case endedQueueFull, endedBuffer:
		after = c.st.relay.rank.QueueTime()
	case endedRate:
		after = c.st.relay.rank.RateWait(c.head.Account(), now)
	default:
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
// call waited (Options.Explain). It is valid until the shard's scratch is used again.
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
		return h2.AppendField(block, head.Pushback, "-1")
	default:
		return h2.AppendFieldBytes(block, head.Pushback, appendCeil(st.digits[:0], after, time.Millisecond))
	}
}

// appendCeil writes d in whole units, rounded up: a retry before d would fail. Callers read
// 32 bits.
func appendCeil(dst []byte, d, unit time.Duration) []byte {
	return strconv.AppendInt(dst, int64(min((d+unit-1)/unit, math.MaxInt32)), 10)
}

// explanation returns the fields after the trailers of a worker's answer: how long the call
// waited and which worker served it. It is empty without Options.Explain, and for callers
// that do not speak gRPC, which rarely look at trailers. It is valid until the shard's
// scratch is used again.
func (c *call) explanation() []byte {
	if !c.st.relay.settings().Explain || !c.grpc {
		return nil
	}
	block := c.st.appendQueueTime(c.st.scratch[:0], c.waited)
	if c.main.lease.Valid() { // reflection has no slot
		block = h2.AppendField(block, workerField, c.main.lease.Endpoint().Name())
	}
	c.st.scratch = block
	return block
}

// appendQueueTime writes the time in the queue in milliseconds, to the microsecond: 0,
// 0.412, 12.5.
func (st *shardState) appendQueueTime(block []byte, waited time.Duration) []byte {
	ms := float64(waited.Microseconds()) / 1000
	return h2.AppendFieldBytes(block, queueField, strconv.AppendFloat(st.digits[:0], ms, 'f', -1, 64))
}
