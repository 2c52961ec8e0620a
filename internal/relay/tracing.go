package relay

import (
	"encoding/hex"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/trace"
)

// cause is why an attempt is made; zero: it is the first.
type cause uint8

const (
	afterFailure cause = iota + 1
	afterMove          // the worker before provably had not begun the call
)

// beginTrace reads of which trace the call is a part, and begins its spans if it gets some.
// A malformed context counts as none. What is there several times goes to the worker as it is.
func (c *call) beginTrace(b *h2.Block, now time.Duration) {
	set := c.st.relay.settings()
	if set.Trace == nil && set.Access == nil || !c.grpc {
		return
	}
	field, _ := b.Watched(head.FieldTraceParent)
	state, _ := b.Watched(head.FieldTraceState)
	if field.Count > 1 || state.Count > 1 {
		return
	}
	from, valid := trace.Parse(field.Value)
	if c.trace = set.Trace.Begin(from, valid, c.callerID.Address, now); c.trace != nil {
		from = c.trace.From
		if valid {
			c.trace.KeepState(state.Value)
		}
	}
	c.traceID = from.Trace
}

// beginSpan begins the span of an attempt, and sets the fields that tell its worker: the state
// of another trace than the caller's is not passed on.
func (a *attempt) beginSpan(own *[head.OwnFields][]byte, now time.Duration) {
	c := a.call
	kind := [...]string{trace.First, trace.Retry, trace.Moved}[c.after]
	if a != c.main {
		kind = trace.Hedge
	}
	u := a.via.upstream
	number := c.trace.Begin(kind, u.endpoint.name, u.address, now)
	a.span = number + 1
	c.st.scratchTrace = c.trace.Parent(c.st.scratchTrace[:0], number)
	own[head.OwnTrace] = c.st.heads.Trace(c.st.scratchTrace)
	if c.trace.From.Span == (trace.ID{}) {
		own[head.OwnState] = []byte{}
	}
}

// endSpan ends the span of an attempt.
func (a *attempt) endSpan(outcome rank.Outcome, now time.Duration) {
	code, why := a.code, ""
	switch outcome {
	case rank.RefusedByWorker:
		code, why = grpcwire.Unavailable, "refused"
	case rank.NotSent:
		code, why = grpcwire.Unavailable, "not sent"
	case rank.Lost:
		code, why = grpcwire.Unavailable, "lost"
	case rank.Cancelled:
		code, why = grpcwire.Cancelled, "cancelled"
	case rank.Failed:
		if why = "failed"; code == grpcwire.OK {
			code = grpcwire.Unavailable
		}
	case rank.OK, rank.Faulty, rank.MaybeRefused: // the worker's own answer
	}
	a.call.trace.Finish(a.span-1, code, why, now)
}

// endTrace passes on the spans of a call that has ended.
func (c *call) endTrace(now time.Duration) *stats.Exemplar {
	t := c.trace
	c.trace = nil
	t.Path = c.appendPath(t.Path[:0])
	t.Known, t.Door, t.Code = c.method != nil, c.callerID.Door, c.code
	if c.failedAs != notEnded {
		t.Reason = c.failedAs.String()
	}
	shown := &stats.Exemplar{Trace: hex.EncodeToString(c.traceID[:]), Span: t.ID(), Seconds: (now - c.started).Seconds(), At: time.Now()}
	c.st.relay.settings().Trace.End(t, now)
	return shown
}
