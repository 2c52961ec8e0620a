package echo

import (
	"sync/atomic"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

// count is what one listener has done. All its connections add to it.
type count struct{ calls, received, sent atomic.Uint64 }

func (c *count) read() measure.BackendCount {
	return measure.BackendCount{Calls: c.calls.Load(), Received: c.received.Load(), Sent: c.sent.Load()}
}
