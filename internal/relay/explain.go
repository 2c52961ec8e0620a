package relay

import (
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// Fields that tell callers how their call was served (Options.Explain).
const (
	queueField  = "cabrank-queue-ms"
	workerField = "cabrank-worker"
)

// explanation returns the fields after the trailers of a worker's answer: how long the call
// waited and which worker served it. It is empty without Options.Explain, and for callers
// that do not speak gRPC, which rarely look at trailers. It is valid until the shard's
// scratch is used again.
func (c *call) explanation() []byte {
	if !c.st.relay.settings().Explain || !c.grpc {
		return nil
	}
	block := c.st.appendQueueTime(c.st.scratch[:0], c.waited)
	if c.lease.Valid() { // reflection has no slot
		block = h2.AppendField(block, workerField, c.lease.Endpoint().Name())
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
