package redis

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// pending is the calls that have not ended, by their id in Redis.
type pending struct {
	left func(*waiter) // called when the caller has gone
	over func(*waiter) // called when the call has ended

	mu    sync.Mutex
	calls map[string]*waiter
}

// waiter is a call that has not ended.
type waiter struct {
	pending *pending
	id      string
	call    broker.Call
	until   time.Time

	// Guarded by pending.mu.
	sending bool // Redis may have it; does not change after ended
	told    bool // Accepted was called, or is about to be
	ended   bool
	seen    int // number of the last result, if there are several
	timer   *time.Timer
	unwatch func() bool
}

// add notes a call that is about to be sent. It ends when its time is over, or with ctx.
func (p *pending) add(ctx context.Context, id string, call broker.Call) *waiter {
	call.Args = nil // the order has them
	w := &waiter{pending: p, id: id, call: call, until: time.Now().Add(call.Timeout)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[id] = w
	w.timer = time.AfterFunc(call.Timeout, func() { p.end(id, nil, broker.ErrExpired) })
	w.unwatch = context.AfterFunc(ctx, func() {
		if p.end(id, nil, ctx.Err()) && w.sending {
			p.left(w)
		}
	})
	return w
}

// take reports whether the call is still to be sent. From then on Redis may have it.
func (w *waiter) take() bool {
	w.pending.mu.Lock()
	defer w.pending.mu.Unlock()
	if w.ended {
		return false // sending must not change any more
	}
	w.sending = true
	return true
}

// sent is called with the answer of Redis to a call: it was taken, or why not. If that is
// unknown, a caller that cannot be told so waits for its result.
func (w *waiter) sent(err error) {
	if err != nil && err.Error() == broker.ErrCapacity.Error() {
		err = broker.ErrCapacity
	}
	unknown := errors.Is(err, broker.ErrUnknown)
	if unknown && !w.call.Unsure {
		err = nil
	}
	p := w.pending
	p.mu.Lock()
	if w.told { // its time is over, or a result has come before
		p.mu.Unlock()
		return
	}
	w.told = true
	if err != nil {
		w.ended = true
		w.forget()
	}
	p.mu.Unlock()
	w.call.Accepted(err)
	if unknown && err != nil {
		p.left(w)
	}
}

// forget removes the call from pending. The caller holds mu.
func (w *waiter) forget() {
	delete(w.pending.calls, w.id)
	w.timer.Stop()
	w.unwatch()
}

// more hands over one of several results. A result that comes again is dropped: its callee
// may not have heard that it was stored, or another callee runs the call. If the result
// before it is missing, the call ends.
func (p *pending) more(id string, number int, result json.RawMessage) {
	p.mu.Lock()
	w := p.calls[id]
	if w == nil || w.call.Stream == nil || number <= w.seen {
		p.mu.Unlock()
		return
	}
	if number > w.seen+1 {
		p.mu.Unlock()
		p.lost(w)
		return
	}
	w.seen = number
	tell := !w.told
	w.told = true
	p.mu.Unlock()
	if tell {
		w.call.Accepted(nil)
	}
	w.call.Stream.Offer(result)
}

// last ends a call by its last result, which follows count others.
func (p *pending) last(id string, count int, result json.RawMessage) {
	p.mu.Lock()
	w := p.calls[id]
	hole := w != nil && w.call.Stream != nil && w.seen < count
	p.mu.Unlock()
	if hole {
		result = broker.ErrorResult(broker.ErrHole)
	}
	p.end(id, result, nil)
}

// lost ends a call after a result was lost.
func (p *pending) lost(w *waiter) {
	if p.end(w.id, broker.ErrorResult(broker.ErrHole), nil) {
		p.left(w)
	}
}

// end ends a call and reports true, unless the call has ended already.
func (p *pending) end(id string, result json.RawMessage, err error) bool {
	p.mu.Lock()
	w := p.calls[id]
	if w == nil {
		p.mu.Unlock()
		return false // it has ended already
	}
	w.forget()
	w.ended = true
	tell := !w.told
	w.told = true
	refused := error(nil)
	switch late := tell && errors.Is(err, broker.ErrExpired); {
	case late && !w.sending:
		refused = errLost
	case late && w.call.Unsure:
		refused = broker.ErrUnknown
	}
	p.mu.Unlock()
	p.over(w)
	if tell {
		w.call.Accepted(refused)
	}
	if refused == nil {
		w.call.Answered(result, err)
	}
	return true
}

func (p *pending) endAll(err error) {
	p.mu.Lock()
	var ids []string
	for id := range p.calls {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for _, id := range ids {
		p.end(id, nil, err)
	}
}

func (p *pending) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}
