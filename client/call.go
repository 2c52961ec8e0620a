package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Call calls a function and reads its result into an R. The argument is whatever
// encoding/json takes; a json.RawMessage goes as it is.
//
// Errors: as Client.Call; and of a result that is no R.
func Call[R any](ctx context.Context, c *Client, uri string, args any) (R, error) {
	var result R
	raw, err := c.Call(ctx, uri, args)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, fmt.Errorf("call %s: the result: %w", uri, err)
	}
	return result, nil
}

// Call calls a function and returns its result as JSON.
//
// Units: the deadline of ctx is what the function has, too, in whole milliseconds; a
// call that waits for a connection has less of it left. Without one it is
// Options.CallTimeout.
// Errors: RefusedError; FunctionError; ExpiredError; DisconnectedError, and then it may
// have been served; ErrClosed; context.Canceled. An argument that is no JSON.
func (c *Client) Call(ctx context.Context, uri string, args any) (json.RawMessage, error) {
	text, err := encode(kindCall, uri, args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	result, err := c.do(ctx, request{kind: kindCall, name: uri, args: text})
	if err == nil && result == nil {
		result = json.RawMessage("null")
	}
	return result, err
}

// Publish publishes an event, and returns when the server has acknowledged it.
//
// Errors: as Client.Call, but for FunctionError.
func (c *Client) Publish(ctx context.Context, channel string, args any) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.Post(ctx, channel, args)
	if err != nil {
		return err
	}
	return r.Wait(ctx)
}

// Receipt is what is left of an event that was handed over.
//
// Life: Post, one Wait or none.
type Receipt struct {
	link  *link
	w     *waiting
	began time.Time
}

// Post hands an event over and does not wait for the server. Events go out in the order
// of the calls of Post. It waits while 1 MiB of requests is not written, or 65,536 have no
// answer.
//
// Errors: those of an argument, of ctx, and ErrClosed; all others come with Wait.
func (c *Client) Post(ctx context.Context, channel string, args any) (*Receipt, error) {
	text, err := encode(kindPub, channel, args)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r := request{kind: kindPub, name: channel, args: text}
	l, err := c.ready(ctx, r, began)
	if err != nil {
		return nil, err
	}
	return &Receipt{l, l.push(r), began}, nil
}

// Wait returns when the server has acknowledged the event.
//
// Errors: as Publish.
func (r *Receipt) Wait(ctx context.Context) error {
	_, err := r.link.await(ctx, r.w, r.began)
	return err
}

// bound gives a context a deadline, if it has none.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.options.CallTimeout)
}

// do makes a request and waits for its end.
func (c *Client) do(ctx context.Context, r request) (json.RawMessage, error) {
	began := time.Now()
	l, err := c.ready(ctx, r, began)
	if err != nil {
		return nil, err
	}
	r.timeout = left(ctx)
	return l.await(ctx, l.push(r), began)
}

// left is the time of a call: below a millisecond servers take it for a minute.
func left(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline() // there is one, see bound
	return max(time.Until(deadline).Truncate(time.Millisecond), time.Millisecond)
}

// ready waits for a connection, and for room on it.
func (c *Client) ready(ctx context.Context, r request, began time.Time) (*link, error) {
	l, down, err := c.await(ctx)
	if err == nil {
		err = l.room(ctx)
	}
	if err != nil {
		return nil, ended(err, &ExpiredError{Request: r.kind.request(), Name: r.name, After: time.Since(began), Cause: down})
	}
	return l, nil
}

// ended makes of the end of a context what a caller is told.
func ended(err error, expired *ExpiredError) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return expired
	}
	return err
}

// await returns the reply to a request.
func (l *link) await(ctx context.Context, w *waiting, began time.Time) (json.RawMessage, error) {
	select {
	case r := <-w.reply:
		return r.result, r.err
	case <-ctx.Done():
	}
	return l.giveUp(ctx, w, began)
}

// giveUp ends the waiting for a reply, unless it comes at the same moment.
func (l *link) giveUp(ctx context.Context, w *waiting, began time.Time) (json.RawMessage, error) {
	taken := l.forget(w, ctx.Err())
	select {
	case r := <-w.reply:
		return r.result, r.err
	default:
		if w.kind == kindCall && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			l.trace(Message{Kind: string(kindExp), ID: w.id, Name: w.name})
		}
		return nil, ended(ctx.Err(), &ExpiredError{Request: w.kind.request(), Name: w.name, After: time.Since(began), Taken: taken})
	}
}
