package methods

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
)

// longValue is from which length on JSON and messages wait for a turn to be read.
const longValue = 4 << 10

// call is one call while it lasts.
type call struct {
	broker.Call

	methods *Methods
	from    *caller
	method  *schema.Method  // nil: not known
	ctx     context.Context //nolint:containedctx // of the call, which has a goroutine of its own
	until   time.Time
	local   relay.LocalCall
	body    []byte // of the request, until it has left
	held    int    // bytes that count as the caller's
}

// serve takes it to its end.
func (k *call) serve() {
	defer k.free()
	if !k.Take(goroutineBytes) {
		k.Accepted(errMemory)
		return
	}
	left, err := k.find()
	switch {
	case err != nil:
		k.notFound(err)
		return
	case k.method != nil && k.method.CallerStreams:
		k.failAtOnce(fail(grpcwire.Unimplemented, "its caller sends a stream of messages, which cannot be done over a socket"))
		return
	case k.method != nil && k.method.ServerStreams && k.Stream == nil:
		k.failAtOnce(broker.ErrOneResult)
		return
	}
	if !k.open(left) {
		return
	}
	defer k.local.Close()
	stop := context.AfterFunc(k.ctx, k.local.Cancel)
	defer stop()
	if status := k.local.Taken(); status != 0 {
		_, why := k.local.Status()
		k.Accepted(refused(status, why))
		return
	}
	k.Accepted(nil)
	k.local.Sent()
	k.dropBody()
	if k.streams() {
		k.end(nil, k.stream())
	} else {
		k.end(k.answer())
	}
}

// find looks the method up, and returns the time that is left for the call. One that is
// called with protobuf need not be known.
func (k *call) find() (left time.Duration, err error) {
	known := k.methods.options.Schema
	k.method = known.Known(k.URI)
	if k.method == nil && !isName(k.URI[strings.LastIndexByte(k.URI, '/')+1:]) {
		return 0, schema.ErrUnknown // workers are not asked, who get the URI as it is
	}
	if k.method != nil || k.Content == broker.Protobuf {
		return k.Timeout, nil // to the digit: the relay knows HEADERS again that are the same
	}
	ctx, cancel := context.WithDeadline(k.ctx, k.until)
	defer cancel()
	k.method, err = known.Method(ctx, k.URI)
	return time.Until(k.until), err
}

// isName reports whether a method can have a name. Source: the language of protobuf.
func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return name != ""
}

// streams reports whether the answer is a stream, as far as is known: what its caller
// takes as one will do.
func (k *call) streams() bool {
	if k.method == nil {
		return k.Stream != nil
	}
	return k.method.ServerStreams
}

// notFound ends a call whose method is not known.
func (k *call) notFound(err error) {
	switch {
	case errors.Is(err, schema.ErrUnavailable):
		k.Accepted(refused(503, err.Error()))
	case errors.Is(err, schema.ErrUnknown) && k.IfServed:
		k.Accepted(broker.ErrNobody)
	case errors.Is(err, schema.ErrUnknown), errors.Is(err, schema.ErrUndescribed):
		k.failAtOnce(fail(grpcwire.Unimplemented, err.Error()))
	default: // it has waited in vain
		k.failAtOnce(fail(grpcwire.DeadlineExceeded, err.Error()))
	}
}

// failAtOnce ends a call that was accepted and goes no further.
func (k *call) failAtOnce(err error) {
	k.Accepted(nil)
	k.end(nil, err)
}

// open sends the request. It reports false if that was not possible, and has said so.
func (k *call) open(left time.Duration) bool {
	space, ok := k.methods.spaces.Get().(*[]byte)
	if !ok {
		space = new([]byte)
	}
	var err error
	k.body, err = k.request((*space)[:0])
	switch {
	case errors.Is(err, errMemory), err == nil && !k.Take(cap(k.body)):
		k.Accepted(errMemory)
		return false
	case err != nil:
		k.failAtOnce(err)
		return false
	}
	switch err := k.from.local.Open(&k.local, k.from.request(k.Caller, k.URI, left, k.body)); {
	case errors.Is(err, relay.ErrTooManyCalls):
		k.Accepted(refused(429, "too many calls of this socket are open"))
		return false
	case err != nil:
		k.Accepted(refused(503, "shutting down"))
		return false
	}
	return true
}

// request appends the message with its prefix.
func (k *call) request(b []byte) ([]byte, error) {
	b = grpcwire.AppendPrefix(b, grpcwire.Prefix{})
	if k.Content == broker.Protobuf {
		b = append(b, k.Args...)
	} else {
		done, err := k.turn(len(k.Args))
		if err != nil {
			return b, err
		}
		defer done()
		weight := k.method.WeighRequest(k.Args)
		if !k.Take(weight) {
			return b, errMemory
		}
		defer k.Give(weight)
		if b, err = k.method.AppendRequest(b, k.Args); err != nil {
			return b, fail(grpcwire.InvalidArgument, err.Error())
		}
	}
	grpcwire.AppendPrefix(b[:0], grpcwire.Prefix{Length: uint32(len(b) - grpcwire.PrefixLen)})
	return b, nil
}

// dropBody gives up the request, once it has left or the call is over.
func (k *call) dropBody() {
	if k.body == nil {
		return
	}
	if cap(k.body) <= longValue {
		space := k.body
		k.methods.spaces.Put(&space)
	}
	k.Give(cap(k.body))
	k.body = nil
}

// answer takes the answer of a unary method.
func (k *call) answer() (json.RawMessage, error) {
	in := grpcwire.Messages{From: &k.local, Budget: k, Most: mostAnswer}
	defer in.Free()
	message, err := next(&in)
	if err != nil {
		return nil, k.whyEnded(err, true)
	}
	result, err := k.result(message)
	if err != nil {
		return nil, err
	}
	switch _, err := next(&in); {
	case err == nil && k.method == nil:
		return nil, broker.ErrOneResult
	case err == nil:
		return nil, fail(grpcwire.Internal, "the worker has sent more than one message")
	default:
		return result, k.whyEnded(err, false)
	}
}

// stream hands over an answer message by message. What its caller does not take is not
// read, so that the worker waits.
func (k *call) stream() error {
	in := grpcwire.Messages{From: &k.local, Budget: k, Most: mostAnswer}
	defer in.Free()
	ctx, cancel := context.WithDeadline(k.ctx, k.until)
	defer cancel()
	for {
		message, err := next(&in)
		if err != nil {
			return k.whyEnded(err, false)
		}
		result, err := k.result(message)
		if err == nil {
			err = k.Stream.Send(ctx, result)
		}
		if err != nil {
			return err
		}
		k.Give(cap(result))
	}
}

// result is a message of the answer as the caller wants it. Its capacity counts as the
// caller's.
func (k *call) result(message []byte) (json.RawMessage, error) {
	tooLarge := fail(grpcwire.ResourceExhausted, "the answer takes more memory than there is for this caller")
	if k.Content == broker.Protobuf {
		result := append(make([]byte, 0, len(message)), message...)
		if !k.Take(cap(result)) {
			return nil, tooLarge
		}
		return result, nil
	}
	done, err := k.turn(len(message))
	if err != nil {
		return nil, err
	}
	defer done()
	weight, text := k.method.WeighAnswer(message)
	if !k.Take(weight) {
		return nil, tooLarge
	}
	defer k.Give(weight)
	if !k.Take(text) {
		return nil, tooLarge
	}
	result, err := k.method.AppendAnswer(make([]byte, 0, text), message)
	if err != nil {
		return nil, fail(grpcwire.Internal, "the answer is not what the schema says: "+err.Error())
	}
	if cap(result) != text { // it was more than was thought
		k.Give(text)
		if !k.Take(cap(result)) {
			return nil, tooLarge
		}
	}
	return result, nil
}

// whyEnded tells why no further message has come: nil if all is well.
func (k *call) whyEnded(err error, wanted bool) error {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f
	}
	switch code, why := k.local.Status(); {
	case code != grpcwire.OK:
		return fail(code, why)
	case wanted || !errors.Is(err, io.EOF):
		return fail(grpcwire.Internal, "the worker has sent no whole message")
	}
	return nil
}

// end answers the call.
func (k *call) end(result json.RawMessage, err error) {
	switch f := (*failure)(nil); {
	case k.ctx.Err() != nil:
		k.Answered(nil, k.ctx.Err())
	case err == nil:
		k.Answered(result, nil)
	case errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &f) && f.code == grpcwire.DeadlineExceeded && time.Until(k.until) < clockSkew:
		k.Answered(nil, broker.ErrExpired)
	case k.Content == broker.Protobuf && f != nil:
		k.Answered(nil, &broker.CodeError{Code: int(f.code), Text: f.message})
	case k.Content == broker.Protobuf:
		k.Answered(nil, err)
	default:
		k.Answered(broker.ErrorResult(err), nil)
	}
}

// clockSkew is how much earlier than here a deadline may pass at a worker.
const clockSkew = 2 * time.Millisecond
