package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

var (
	// ErrCapacity refuses a call: as many wait for its URI as may. The text is the one
	// that juggler.0 has always had for it.
	ErrCapacity = errors.New("list capacity exceeded")

	// ErrFull refuses a call: all that wait take as much memory as they may.
	ErrFull = errors.New("too many calls wait")

	// ErrExpired ends a call that was not answered in time.
	ErrExpired = errors.New("call expired")

	// ErrUnknown refuses a request that may have been taken: whoever has it has not
	// answered.
	ErrUnknown error = &CodeError{Code: 504, Text: "not known whether it was taken"}

	// ErrHole ends a call of which a result before the last one was lost on its way.
	ErrHole error = &CodeError{Code: 504, Text: "results were lost on their way; the function has run"}

	// ErrClosed refuses everything: the broker has ended.
	ErrClosed = errors.New("no broker")

	// ErrNobody refuses a call that is not to wait for who may serve it.
	ErrNobody error = &CodeError{Code: 404, Text: "no function of this URI"}

	// ErrOneResult ends a call whose function has several results for a caller that
	// takes one.
	ErrOneResult error = &CodeError{Code: 412, Text: "the function has several results: call it with credit"}
)

// CodeError refuses a request with a code, as those of HTTP: 401, 403, 429, 503. Any
// other error is a 500. Of a function it is the result, with the code in it.
type CodeError struct {
	Code int
	Text string
}

// Error implements error.
func (e *CodeError) Error() string { return e.Text }

// MarshalJSON returns {"error":{"code":...,"message":"..."}}: the result of a call.
func (e *CodeError) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"error": map[string]any{"code": e.Code, "message": e.Text}})
}

// Caller is who makes calls: one socket.
//
// Concurrency: nobody changes it once it has made a call.
type Caller struct {
	// ID is a UUID, of the socket alone.
	ID string
	// Address is its peer's, without port; "" if it has none.
	Address string
	// User is who the caller has proved to be; "" if nobody knows.
	User string
	// Certificate is the name by which its connection has shown who it is; "" if it has not.
	Certificate string
	// Source names all who share what bounds them with this one: a user, or an address;
	// "" if nobody knows.
	Source string
}

// Share is what one caller may take of this process.
//
// Concurrency: every method may be called from anywhere.
type Share interface {
	// Take reports whether there was room for so many bytes, which Give returns.
	Take(bytes int) bool
	// Give returns bytes that Take had room for.
	Give(bytes int)
	// Turn waits for a turn at work that takes long, of which few are done at a time. It
	// ends with done. Errors: that of ctx.
	Turn(ctx context.Context) (done func(), err error)
}

// Content is what arguments and results are.
type Content int

const (
	// JSON is a JSON value, or nothing. It is what every function takes.
	JSON Content = iota
	// Protobuf is the message of a gRPC method. A Broker is never asked with it.
	Protobuf
)

// Stream is a caller that takes several results of a call: as many as it has given
// credit for, then the last one, which needs none.
//
// Concurrency: every method may be called from anywhere. After Call.Answered none has an
// effect.
type Stream interface {
	// Send hands over a result that is not the last one. It waits until there is credit
	// and the caller has read enough of what it was sent before. An error says that the
	// call has ended, or is that of ctx.
	Send(ctx context.Context, result json.RawMessage) error
	// Offer is Send for who must not wait, and keeps to what Watch has told. It reports
	// whether there was credit.
	Offer(result json.RawMessage) bool
	// Watch has f called with the credit that there is, maybe in parts, and then with what
	// is added, until the call ends: one call after the other, in any goroutine. f must
	// not block. It is for functions that are elsewhere.
	Watch(f func(credit int))
}

// Call is one call of a function.
//
// Concurrency: both functions are called outside of all locks of the broker, maybe
// before Broker.Call has returned, and must not block.
type Call struct {
	// Caller is who makes it; nil if nobody says so.
	Caller *Caller
	// Share is the caller's; nil: nothing is counted. Args count already.
	Share Share
	// URI names the function.
	URI string
	// Content is what Args are, and the result.
	Content Content
	// Args is a JSON value, nil if there is none. Nobody changes its bytes.
	Args json.RawMessage
	// Stream takes results before the last one; nil if the caller takes one alone.
	Stream Stream
	// IfServed refuses the call with ErrNobody if it is known that nobody serves its URI,
	// instead of keeping it.
	IfServed bool
	// Unsure is set if the caller can be told ErrUnknown. Otherwise such a call counts as
	// taken.
	Unsure bool
	// Timeout is how long the call may take, from now on; above zero.
	Timeout time.Duration
	// Accepted is called once: without an error if the call was taken.
	Accepted func(err error)
	// Answered is called once if the call was taken, after or at the same time as
	// Accepted: with the result, which is nil if the function has none; with ErrExpired;
	// if the caller has left, with the error of its context; or, if Content is not JSON,
	// with the error of the function, which otherwise is a result (ErrorResult).
	Answered func(result json.RawMessage, err error)
}

// Function answers calls of one URI.
//
// The context ends when the call expires or its caller leaves: what is returned after
// that is dropped. An error becomes a result, as ErrorResult has it.
type Function func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// StreamFunction answers calls of one URI with any number of results: those that it sends,
// then the one that it returns. send waits for the caller; an error of it says that the
// call has ended, or, as ErrOneResult, that its caller takes no other result than the
// last one. The rest is as with Function.
type StreamFunction func(ctx context.Context, args json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error)

// ErrorResult is the result that a call has if its function fails: the error's own
// JSON if it has one, {"error":{"message":"..."}} otherwise.
func ErrorResult(err error) json.RawMessage {
	if own, ok := errors.AsType[interface {
		error
		json.Marshaler
	}](err); ok {
		if result, err := json.Marshal(own); err == nil {
			return result
		}
	}
	result, _ := json.Marshal(map[string]map[string]string{"error": {"message": err.Error()}}) //nolint:errchkjson // texts always are JSON
	return result
}

// Topic is what can be subscribed to: a channel, or all channels that match a pattern.
type Topic struct {
	// Name is the channel, or the glob if Pattern is true (see Matches).
	Name    string
	Pattern bool
}

// Event is what was published.
type Event struct {
	// Channel is where.
	Channel string
	// ID is that of the message by which it was published.
	ID string
	// Args is a JSON value, nil if there is none. Nobody changes its bytes.
	Args json.RawMessage
}

// Faults of functions.
var (
	errNotJSON = errors.New("the function has returned no JSON")
	errPanic   = errors.New("the function has panicked")
)
