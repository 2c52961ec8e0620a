package head

import (
	"slices"
	"strconv"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
)

// keepBlock keeps the request's header block for its first and any further attempt. It drops
// grpc-timeout, which each attempt writes anew with the time left, appends the caller's
// address to x-forwarded-for, adds a hop, and marks the fields that attempts replace.
func (r *Reader) keepBlock(h *Head, b *h2.Block, from *From) {
	head := r.Pool.Get(len(b.Enc) + len(h.Caller.Forwarded) + len(h.Caller.Fields) + len(r.Rules.firstHop) + 64)
	var room [4]span
	copied, hasXFF, hasHops := 0, false, false
	for _, at := range r.spans(h, b, from, room[:0]) {
		head = append(head, b.Enc[copied:at.Start]...)
		copied = at.End
		switch at.field {
		case FieldTimeout:
			h.mark(OwnTimeout, len(head), 0)
		case FieldForwardedFor:
			if !hasXFF {
				head, hasXFF = r.appendForwarded(h, b, from, head, at.Value), true
			}
		case FieldHops:
			head, hasHops = r.appendHops(head, h.Hops), true
		case FieldTries:
			h.tries = triesOf(at.Value)
			h.mark(OwnTries, len(head), at.End-at.Start)
			head = append(head, b.Enc[at.Start:at.End]...)
		case FieldTraceParent:
			h.mark(OwnTrace, len(head), at.End-at.Start)
			head = append(head, b.Enc[at.Start:at.End]...)
		case FieldTraceState:
			h.mark(OwnState, len(head), at.End-at.Start)
			head = append(head, b.Enc[at.Start:at.End]...)
		}
	}
	head = append(head, b.Enc[copied:]...)
	if !hasXFF {
		head = append(head, h.Caller.Forwarded...)
	}
	if !hasHops {
		head = append(head, r.Rules.firstHop...)
	}
	h.Block = append(head, h.Caller.Fields...)
}

// span is the place of a field in a header block.
type span struct {
	field int // its id in the watch list
	h2.Watched
}

// spans appends to into the fields of a request that are written anew or dropped, in their
// order.
func (r *Reader) spans(h *Head, b *h2.Block, from *From, into []span) []span {
	for _, field := range [...]int{FieldTimeout, FieldForwardedFor, FieldHops, FieldTries, FieldUser, FieldSocket, FieldClient, FieldTraceParent, FieldTraceState} {
		w, found := b.Watched(field)
		switch {
		case !found || !r.rewrites(h, from, field):
		case w.Count > 1 && (field >= FieldUser && field <= FieldClient || field == FieldForwardedFor && isForwarded(h, from)): // the engine noted only the last one
			into = everyOne(b, field, into)
		default:
			into = inOrder(into, span{field, w})
		}
	}
	return into
}

// everyOne adds the spans of all fields with this name.
func everyOne(b *h2.Block, field int, into []span) []span {
	wanted := Fields()[field]
	for rest := b.Enc; len(rest) > 0; {
		name, _, next := h2.NextField(rest)
		if string(name) == wanted {
			into = inOrder(into, span{field, h2.Watched{Start: len(b.Enc) - len(rest), End: len(b.Enc) - len(next)}})
		}
		rest = next
	}
	return into
}

// inOrder inserts a span by its start.
func inOrder(into []span, c span) []span {
	at := len(into)
	for at > 0 && into[at-1].Start > c.Start {
		at--
	}
	return slices.Insert(into, at, c)
}

// rewrites reports whether Cabrank writes the field anew, or drops it: callers over sockets do
// not say who they are.
func (r *Reader) rewrites(h *Head, from *From, field int) bool {
	switch field {
	case FieldTimeout, FieldTraceParent, FieldTraceState:
		return h.GRPC
	case FieldForwardedFor:
		return len(h.Caller.Forwarded) > 0
	case FieldTries:
		return h.Rule != nil
	case FieldUser, FieldSocket, FieldClient:
		return !from.InProcess
	default:
		return r.Rules.MaxHops > 0
	}
}

// isForwarded reports whether a proxy named the caller.
func isForwarded(h *Head, from *From) bool { return from.Proxied && h.Caller.Address != from.Peer }

// appendForwarded writes x-forwarded-for with the caller's address added. A proxy's list goes
// on with other proxies behind the caller; they are dropped, so that workers find the caller
// at the end.
func (r *Reader) appendForwarded(h *Head, b *h2.Block, from *From, head, value []byte) []byte {
	scratch := append(r.scratch[:0], value...)
	if isForwarded(h, from) {
		_, before, _ := r.Rules.Forwarded(b)
		scratch = append(scratch[:0], before...)
	}
	if len(scratch) > 0 {
		scratch = append(scratch, ", "...)
	}
	scratch = append(scratch, h.Caller.Address...)
	r.scratch = scratch
	return h2.AppendFieldBytes(head, callers.ForwardedFor, scratch)
}

// appendHops writes the field for the worker, with one more hop.
func (r *Reader) appendHops(head []byte, hops int) []byte {
	return h2.AppendFieldBytes(head, hopsName, strconv.AppendInt(r.digits[:0], int64(hops+1), 10))
}

// Trace returns the field traceparent, encoded. It is valid until the reader is used again.
func (r *Reader) Trace(value []byte) []byte {
	r.trace = h2.AppendFieldBytes(r.trace[:0], traceName, value)
	return r.trace
}

// Tries returns the field of an attempt that has so many before it, encoded. It is valid until
// the reader is used again.
func (r *Reader) Tries(h *Head, before int) []byte {
	r.scratch = h2.AppendFieldBytes(r.scratch[:0], triesName, strconv.AppendInt(r.digits[:0], int64(h.tries+before), 10))
	return r.scratch
}
