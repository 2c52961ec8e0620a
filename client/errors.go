package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrClosed is of a Client that was closed, and of a Subscription that was.
var ErrClosed = errors.New("client: closed")

// RefusedError is a request that the server has not taken (a NACK).
type RefusedError struct {
	// Request is "call", "publish", "subscribe" or "unsubscribe".
	Request string
	// Name is the URI or the channel.
	Name string
	// Code is 500 in juggler.0, whatever the reason.
	Code int
	// Message is for people.
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s: refused with %d: %s", e.Request, e.Name, e.Code, e.Message)
}

// FunctionError is a call that the function has answered with an error.
//
// Shape: a result that is an object with the one key "error", mostly with a "message".
type FunctionError struct {
	URI string
	// Code is that of the error, if it has one; 0 if not.
	Code int
	// Message is for people; if the error has none, it is all of it as JSON.
	Message string
	// Result is all of it, as the function returned it.
	Result json.RawMessage
}

// Error implements error.
func (e *FunctionError) Error() string { return fmt.Sprintf("call %s: %s", e.URI, e.Message) }

// ExpiredError is a call that had no result at its deadline, or an event or subscription
// that was not acknowledged. errors.Is says that it is context.DeadlineExceeded.
type ExpiredError struct {
	// Request and Name are as in RefusedError.
	Request, Name string
	// After is how long it was waited for.
	After time.Duration
	// Taken says that the server had acknowledged a call, so that it may have been
	// served.
	Taken bool
	// Cause is why there was no connection, if it was waited for one.
	Cause error
}

// Error implements error.
func (e *ExpiredError) Error() string {
	why := "it was not acknowledged"
	switch {
	case e.Cause != nil:
		why = "there was no connection: " + e.Cause.Error()
	case e.Taken:
		why = "it was taken, and no result came"
	}
	return fmt.Sprintf("%s %s: expired after %v: %s", e.Request, e.Name, e.After.Round(time.Millisecond), why)
}

// Unwrap returns context.DeadlineExceeded, and Cause.
func (e *ExpiredError) Unwrap() []error {
	if e.Cause == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.Cause}
}

// DisconnectedError is a request that was under way when the connection ended, or that of
// the server to its Redis (504 of juggler.1).
type DisconnectedError struct {
	// Request and Name are as in RefusedError.
	Request, Name string
	// Sent says that it was handed to the network: it may have been served, or not.
	// If it was not, it was not served either, and can be made again.
	Sent bool
	// Cause is why the connection ended.
	Cause error
}

// Error implements error.
func (e *DisconnectedError) Error() string {
	sent := "before it was sent"
	if e.Sent {
		sent = "when it was under way"
	}
	return fmt.Sprintf("%s %s: the connection ended %s: %v", e.Request, e.Name, sent, e.Cause)
}

// Unwrap returns Cause.
func (e *DisconnectedError) Unwrap() error { return e.Cause }
