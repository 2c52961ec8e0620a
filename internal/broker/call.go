package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

var (
	// ErrCapacity refuses a call because too many calls wait for its URI. juggler.0 has
	// always had this text for it.
	ErrCapacity = errors.New("list capacity exceeded")

	// ErrFull refuses a call because the waiting calls take all the memory that they may.
	ErrFull = errors.New("too many calls wait")

	// ErrExpired ends a call that was not answered in time.
	ErrExpired = errors.New("call expired")

	// ErrUnknown refuses a request that may have been taken: Redis has not answered.
	ErrUnknown error = &CodeError{Code: 504, Text: "not known whether it was taken"}

	// ErrHole ends a call after a result before the last one was lost on its way.
	ErrHole error = &CodeError{Code: 504, Text: "results were lost on their way; the function has run"}

	// ErrClosed refuses everything: the broker has ended.
	ErrClosed = errors.New("no broker")

	// ErrNobody refuses a call that must not wait for a callee.
	ErrNobody error = &CodeError{Code: 404, Text: "no function of this URI"}

	// ErrOneResult ends a call whose function has several results while its caller takes
	// only one.
	ErrOneResult error = &CodeError{Code: 412, Text: "the function has several results: call it with credit"}
)

// CodeError refuses a request with a code like those of HTTP: 401, 403, 429, 503. Any
// other error is a 500. From a function, it becomes the result, with the code in it.
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

// Caller is one socket that makes calls.
//
// Concurrency: it does not change after it has made a call.
type Caller struct {
	// ID is the UUID of the socket.
	ID string
	// Address is the peer's address, without port; "" if it has none.
	Address string
	// User is the user that the caller's token proves; "" if not known.
	User string
	// Certificate is the name in the certificate of its connection; "" without one.
	Certificate string
	// Source is the key of the callers that share limits with this one: a user, or an
	// address; "" if not known.
	Source string
}

// Share is the part of this process's memory and time that one caller may take.
//
// Concurrency: every method may be called from anywhere.
type Share interface {
	// Take takes bytes, which Give returns. It reports false if they do not fit.
	Take(bytes int) bool
	// Give returns bytes that were taken.
	Give(bytes int)
	// Turn waits for a turn at long work, of which only little is done at a time. The
	// turn ends with done. Errors: that of ctx.
	Turn(ctx context.Context) (done func(), err error)
}

// Content is the encoding of arguments and results.
type Content int

const (
	// JSON is a JSON value, or nothing. Every function takes it.
	JSON Content = iota
	// Protobuf is the message of a gRPC method. A Broker never gets it.
	Protobuf
)

// Stream is a caller that takes several results of a call: as many as it has given
// credit for, then the last one, which needs none.
//
// Concurrency: every method may be called from anywhere. After Call.Answered none has an
// effect.
type Stream interface {
	// Send hands over a result that is not the last one. It waits until the caller has
	// given credit and has read enough of the results before. The error means that the
	// call has ended, or is that of ctx.
	Send(ctx context.Context, result json.RawMessage) error
	// Offer is Send without waiting, for a function that keeps to the credit from Watch.
	// It reports whether the caller had given credit.
	Offer(result json.RawMessage) bool
	// Watch calls f with the present credit, maybe in parts, and then with further
	// credit, until the call ends: one call after the other, in any goroutine. f must
	// not block. It is for functions in other processes.
	Watch(f func(credit int))
}

// Call is one call of a function.
//
// Concurrency: both functions are called outside of all locks of the broker, maybe
// before Broker.Call has returned, and must not block.
type Call struct {
	// Caller makes the call; nil if not known.
	Caller *Caller
	// Share is the caller's; nil: nothing is counted. Args count already.
	Share Share
	// URI names the function.
	URI string
	// Content is the encoding of Args and of the result.
	Content Content
	// Args is a JSON value, nil without arguments. Its bytes are never changed.
	Args json.RawMessage
	// Stream takes results before the last one; nil if the caller takes only one.
	Stream Stream
	// IfServed refuses the call with ErrNobody if its URI is known to have no callee,
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
	// Accepted: with the result, which may be nil; with ErrExpired; if the caller has
	// left, with the error of its context; or, if Content is not JSON, with the error of
	// the function, which otherwise is a result (ErrorResult).
	Answered func(result json.RawMessage, err error)
}

// Function answers calls of one URI.
//
// The context ends when the call expires or its caller leaves; a result after that is
// dropped. An error becomes a result by ErrorResult.
type Function func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// StreamFunction answers calls of one URI with any number of results: those that it sends,
// then the one that it returns. send waits for the caller; its error means that the call
// has ended, or, if it is ErrOneResult, that the caller takes only the last result. The
// rest is as with Function.
type StreamFunction func(ctx context.Context, args json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error)

// ErrorResult is the result of a call whose function fails: the error's own JSON if it
// implements json.Marshaler, {"error":{"message":"..."}} otherwise.
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

// Topic is a channel to subscribe to, or all channels that match a pattern.
type Topic struct {
	// Name is the channel, or the glob if Pattern is true (see Matches).
	Name    string
	Pattern bool
}

// Event is a published event.
type Event struct {
	// Channel is the channel in which it was published.
	Channel string
	// ID is the id of the message that published it.
	ID string
	// Args is a JSON value, nil without arguments. Its bytes are never changed.
	Args json.RawMessage
}

// Faults of functions.
var (
	errNotJSON = errors.New("the function has returned no JSON")
	errPanic   = errors.New("the function has panicked")
)
