package redis

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// pending is the calls that have not ended, by their id in Redis.
type pending struct {
	left func(*waiter) // who called has gone
	over func(*waiter) // it has ended

	mu    sync.Mutex
	calls map[string]*waiter
}

// waiter is one of them.
//
// Its result may be there before the word that it was taken: it is told after that.
type waiter struct {
	pending *pending
	id      string
	call    broker.Call

	// Guarded by pending.mu.
	told    bool // Accepted was called
	refused bool // with an error
	ended   bool
	seen    int               // the place of the last of several results
	early   []json.RawMessage // of several, before the word that it was taken
	result  json.RawMessage   // of a call that has ended
	err     error
	timer   *time.Timer
	unwatch func() bool
}

// add notes a call that is about to be sent. It ends in its time, or with ctx.
func (p *pending) add(ctx context.Context, id string, call broker.Call) *waiter {
	call.Args = nil // they are on their way
	w := &waiter{pending: p, id: id, call: call}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[id] = w
	w.timer = time.AfterFunc(call.Timeout, func() { p.end(id, nil, broker.ErrExpired) })
	w.unwatch = context.AfterFunc(ctx, func() {
		if p.end(id, nil, ctx.Err()) {
			p.left(w)
		}
	})
	return w
}

// sent is the word of Redis on a call: it was taken, or why not.
func (w *waiter) sent(err error) {
	if err != nil && err.Error() == broker.ErrCapacity.Error() {
		err = broker.ErrCapacity
	}
	w.call.Accepted(err)
	p := w.pending
	p.mu.Lock()
	for err == nil && len(w.early) > 0 {
		results := w.early
		w.early = nil
		p.mu.Unlock()
		for _, result := range results {
			w.call.Stream.Offer(result)
		}
		p.mu.Lock()
	}
	w.told, w.refused = true, err != nil
	if err != nil && !w.ended {
		w.forget()
	}
	tell := w.ended && err == nil
	p.mu.Unlock()
	if tell {
		w.call.Answered(w.result, w.err)
	}
}

// forget takes it out. The caller holds mu.
func (w *waiter) forget() {
	delete(w.pending.calls, w.id)
	w.timer.Stop()
	w.unwatch()
}

// more hands over one of several results. One that comes again, since its callee did not
// hear that it was stored, or another one runs the call, is dropped.
func (p *pending) more(id string, place int, result json.RawMessage) {
	p.mu.Lock()
	w := p.calls[id]
	if w == nil || w.call.Stream == nil || place <= w.seen {
		p.mu.Unlock()
		return
	}
	w.seen = place
	told := w.told
	if !told {
		w.early = append(w.early, result) // as many as there is credit
	}
	p.mu.Unlock()
	if told {
		w.call.Stream.Offer(result)
	}
}

// end ends a call, whichever way comes first, and reports whether it was this one.
func (p *pending) end(id string, result json.RawMessage, err error) bool {
	p.mu.Lock()
	w := p.calls[id]
	if w == nil {
		p.mu.Unlock()
		return false // its caller has left, or its time was over
	}
	w.forget()
	w.ended, w.result, w.err = true, result, err
	tell := w.told && !w.refused
	p.mu.Unlock()
	p.over(w)
	if tell {
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
