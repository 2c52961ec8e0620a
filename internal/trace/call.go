package trace

import (
	"encoding/hex"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

const (
	// mostAttempts bounds the attempts that are kept of a call, mostParts these and its waits.
	mostAttempts, mostParts = 16, 32
	// mostState bounds the tracestate of a span (W3C Trace Context, section 3.3.1.5).
	mostState = 512
)

// The kinds of a call's parts: a wait in the queue, and attempts by why they are made.
const (
	Queue = "queue"
	First = "first"
	Retry = "retry"
	Hedge = "hedge"
	Moved = "moved" // the worker before provably had not begun the call
)

type part struct {
	span       ID
	kind       string
	start, end time.Duration // end is negative while it goes on
	worker     string
	address    string
	code       grpcwire.Code
	ended      string // why Cabrank ended it; "": the worker did
}

// Call is what the spans of a call tell, with times of the relay's clock. A nil Call has no
// spans: its methods do nothing.
//
// Life: Tracer.Begin, Begin and Finish of parts, Tracer.End, which takes it.
// Concurrency: guarded by the lock of the call's shard, until End.
type Call struct {
	From Context // of its caller; From.Span is zero if the trace begins here

	// To be set before End.
	Path   []byte // without a query; append to Path[:0]
	Known  bool   // a worker has the method
	Door   string // by which it came in
	Code   grpcwire.Code
	Reason string // why Cabrank itself ended it; "": a worker answered

	self     part // of the whole call
	caller   string
	state    []byte
	parts    []part
	attempts int // also those that are not kept
}

// KeepState keeps the caller's tracestate, unless it is longer than a span may have it.
func (c *Call) KeepState(state []byte) {
	if c != nil && len(state) <= mostState {
		c.state = append(c.state[:0], state...)
	}
}

// Begin adds a part and returns its number; negative: it is not kept. The address of a worker
// is HOST:PORT, or the path of a Unix socket.
func (c *Call) Begin(kind, worker, address string, now time.Duration) int {
	if c == nil {
		return -1
	}
	if kind != Queue {
		c.attempts++
	}
	if kind != Queue && c.attempts > mostAttempts || len(c.parts) == mostParts {
		return -1
	}
	c.parts = append(c.parts, part{span: newID(), kind: kind, start: now, end: -1, worker: worker, address: address})
	return len(c.parts) - 1
}

// Finish ends a part, unless it has ended. ended is a word of a small set.
func (c *Call) Finish(number int, code grpcwire.Code, ended string, now time.Duration) {
	if c != nil && number >= 0 && c.parts[number].end < 0 {
		p := &c.parts[number]
		p.end, p.code, p.ended = now, code, ended
	}
}

// ID returns the id of the call's own span, hexadecimal.
func (c *Call) ID() string { return hex.EncodeToString(c.self.span[:]) }

// Parent appends the traceparent for the worker of an attempt: with the span of the call, if
// the attempt is not kept.
func (c *Call) Parent(to []byte, number int) []byte {
	context := Context{c.From.Trace, c.self.span, c.From.Flags}
	if number >= 0 {
		context.Span = c.parts[number].span
	}
	return context.Append(to)
}
