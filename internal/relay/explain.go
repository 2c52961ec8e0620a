package relay

import (
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// Fields by which callers are told what became of their call (Options.Explain).
const (
	queueField  = "cabrank-queue-ms"
	workerField = "cabrank-worker"
)

// explanation returns what goes behind the trailers of a worker's answer: how
// long the call has waited and who has served it. It is empty unless
// Options.Explain says otherwise, and for callers that do not speak gRPC, which
// rarely look at trailers. It is valid until the stand's scratch is used again.
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

// appendQueueTime writes a time in the queue in milliseconds, to the
// microsecond: 0, 0.412, 12.5.
func (st *stand) appendQueueTime(block []byte, waited time.Duration) []byte {
	ms := float64(waited.Microseconds()) / 1000
	return h2.AppendFieldBytes(block, queueField, strconv.AppendFloat(st.digits[:0], ms, 'f', -1, 64))
}
