package callee

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Handler answers a call: with a result that is encoded as JSON (a json.RawMessage is stored
// as it is, nil means no result); with an error, which becomes the result; or with ErrLater.
type Handler func(ctx context.Context, call *Call) (any, error)

// Middleware is what goes around functions: it calls next, or answers itself.
type Middleware func(next Handler) Handler

// Option is a property of a function.
type Option func(*function)

// AtLeastOnce has a call be kept in Redis until it is answered: if this callee dies,
// another one that serves the URI AtLeastOnce gets it, up to three times. The function has
// to bear that it runs twice for the same call.
func AtLeastOnce() Option { return func(f *function) { f.kept = true } }

// function serves one URI.
type function struct {
	uri     string
	handler Handler
	kept    bool
	keeper  *keeper // of one that is kept, once it was started
}

// Handle has a function answer the calls of a URI. Arguments and results are JSON, as
// encoding/json has them; arguments that do not fit are an error that is answered.
//
// Ordering: before Run. A second function for a URI is an error of Run.
func Handle[A, R any](c *Callee, uri string, f func(context.Context, A) (R, error), options ...Option) {
	c.HandleCalls(uri, func(ctx context.Context, call *Call) (any, error) {
		var args A
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return nil, err
		}
		return f(ctx, args)
	}, options...)
}

// HandleCalls has a Handler answer the calls of a URI, with all that is known of them.
//
// Ordering: before Run. A second function for a URI is an error of Run.
func (c *Callee) HandleCalls(uri string, handler Handler, options ...Option) {
	if c.functions[uri] != nil {
		c.fault = errors.Join(c.fault, fmt.Errorf("callee: two functions for %.100q", uri))
		return
	}
	f := &function{uri: uri, handler: handler}
	for _, option := range options {
		option(f)
	}
	for i := range c.options.Middleware {
		f.handler = c.options.Middleware[len(c.options.Middleware)-1-i](f.handler)
	}
	c.functions[uri] = f
}

// errPanic is the result of a function that has panicked; what it said is for the log.
var errPanic = errors.New("the function has panicked")

// guarded runs the function; a panic is an error.
func (c *Call) guarded(ctx context.Context) (result any, err error) {
	defer func() {
		if said := recover(); said != nil {
			c.callee.counts.panicked.Add(1)
			c.callee.log().Error("function panicked", slog.String("uri", c.URI), slog.String("call", c.ID),
				slog.String("panic", fmt.Sprintf("%.200v", said)), slog.String("stack", fmt.Sprintf("%.4000s", debug.Stack())))
			result, err = nil, errPanic
		}
	}()
	return c.function.handler(ctx, c)
}
