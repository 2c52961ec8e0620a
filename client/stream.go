package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// streamCredit is how many results of a stream may be on their way: a function that is
// quicker than its caller waits.
const streamCredit = 64

// Stream calls a function that has several results, and reads each into an R.
//
// Errors: as Client.Stream; and of a result that is no R, which ends the call.
func Stream[R any](ctx context.Context, c *Client, uri string, args any) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for raw, err := range c.Stream(ctx, uri, args) {
			var result R
			if err == nil {
				if err = json.Unmarshal(raw, &result); err != nil {
					err = fmt.Errorf("call %s: a result: %w", uri, err)
				}
			}
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// Stream calls a function that has several results, and returns them as they come. Who
// breaks off has the call canceled. Under juggler.0 there is one result.
//
// Units: the deadline of ctx is that of the whole call; without one it is
// Options.CallTimeout.
// Errors: those of Client.Call, which end it.
func (c *Client) Stream(ctx context.Context, uri string, args any) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		ctx, cancel := c.bound(ctx)
		defer cancel()
		began := time.Now()
		r := request{kind: kindCall, name: uri, credit: streamCredit}
		var err error
		if r.args, err = encode(kindCall, uri, args); err != nil {
			yield(nil, err)
			return
		}
		l, err := c.ready(ctx, r, began)
		if err != nil {
			yield(nil, err)
			return
		}
		r.timeout = left(ctx)
		l.results(ctx, l.push(r), began, yield)
	}
}

// results hands on the results of a stream, up to the last.
func (l *link) results(ctx context.Context, w *waiting, began time.Time, yield func(json.RawMessage, error) bool) {
	for used := 1; ; used++ {
		select {
		case result := <-w.results:
			if !yield(result, nil) {
				l.forget(w, context.Canceled)
				return
			}
			if used == streamCredit/2 {
				l.more(w, used)
				used = 0
			}
		case last := <-w.reply:
			l.last(w, last, yield)
			return
		case <-ctx.Done():
			result, err := l.giveUp(ctx, w, began)
			l.last(w, reply{result: result, err: err}, yield)
			return
		}
	}
}

// more lets so many more results come.
func (l *link) more(w *waiting, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control(l.dialect.credit(w.id, n))
}

// last hands on what had come before the end of a stream, and the end.
func (l *link) last(w *waiting, end reply, yield func(json.RawMessage, error) bool) {
	for len(w.results) > 0 {
		if !yield(<-w.results, nil) {
			return
		}
	}
	if end.err != nil || end.result != nil {
		yield(end.result, end.err)
	}
}
