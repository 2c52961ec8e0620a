package broker

import (
	"container/list"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// waiterBytes is the memory of a waiting call, beside its URI and arguments.
const waiterBytes = 512

// uriQueue is the waiting calls of one URI, the oldest first, and its servers. Guarded by
// Memory.mu.
type uriQueue struct {
	waiting list.List // of *waiter
	servers []*server
}

// server is one function, of either kind, and how many more calls it may run.
type server struct {
	function Function
	stream   StreamFunction
	free     int
}

func (l *uriQueue) leave(s *server) {
	l.servers = slices.DeleteFunc(l.servers, func(other *server) bool { return other == s })
}

// waiter is a call that was taken and has not ended.
type waiter struct {
	memory *Memory
	ctx    context.Context //nolint:containedctx // of the caller: it ends the call, which outlives Memory.Call
	call   Call
	until  time.Time

	// Guarded by Memory.mu.
	element *list.Element // in uriQueue.waiting; nil when it does not wait any more
	ended   bool
	timer   *time.Timer
	unwatch func() bool
}

func (w *waiter) size() int64 { return int64(waiterBytes + len(w.call.URI) + len(w.call.Args)) }

// queueOf returns the queue of a URI, and makes it if need be. The caller holds mu.
func (m *Memory) queueOf(uri string) *uriQueue {
	l := m.queues[uri]
	if l == nil {
		l = &uriQueue{}
		m.queues[uri] = l
	}
	return l
}

// forget removes a queue without calls and servers: callers can send any URI. The caller
// holds mu.
func (m *Memory) forget(uri string, l *uriQueue) {
	if l.waiting.Len() == 0 && len(l.servers) == 0 && m.queues[uri] == l {
		delete(m.queues, uri)
	}
}

func (m *Memory) enqueue(w *waiter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.queues[w.call.URI]
	switch {
	case m.closed:
		return ErrClosed
	case w.call.IfServed && (l == nil || len(l.servers) == 0):
		return ErrNobody
	case m.options.CallCap > 0 && l != nil && l.waiting.Len() >= m.options.CallCap:
		return ErrCapacity
	case !m.hasRoom(w):
		return ErrFull
	}
	w.until = time.Now().Add(w.call.Timeout)
	w.element = m.queueOf(w.call.URI).waiting.PushBack(w)
	m.count(w, w.size())
	return nil
}

// sourcePart bounds the memory of one source's waiting calls: it takes at most sourcePart
// times as much as it leaves to others.
const sourcePart = 3

// hasRoom reports whether one more call may wait. The caller holds mu.
func (m *Memory) hasRoom(w *waiter) bool {
	if m.options.WaitingBytes <= 0 {
		return true
	}
	left := m.options.WaitingBytes - m.waiting - w.size()
	source := w.source()
	return left >= 0 && (source == "" || m.waitingOf[source]+w.size() <= sourcePart*left)
}

// count adds bytes to the memory of waiting calls. The caller holds mu.
func (m *Memory) count(w *waiter, bytes int64) {
	m.waiting += bytes
	source := w.source()
	if source == "" {
		return
	}
	if m.waitingOf[source] += bytes; m.waitingOf[source] == 0 {
		delete(m.waitingOf, source)
	}
}

// source is the source of the caller; "" if not known.
func (w *waiter) source() string {
	if w.call.Caller == nil {
		return ""
	}
	return w.call.Caller.Source
}

// watch ends the call when its time is over, or its caller leaves.
func (w *waiter) watch() {
	m := w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.ended {
		return // another goroutine's dispatch was quicker
	}
	w.timer = time.AfterFunc(time.Until(w.until), func() { w.end(nil, ErrExpired) })
	w.unwatch = context.AfterFunc(w.ctx, func() { w.end(nil, w.ctx.Err()) })
}

// end ends a call, unless it has ended.
func (w *waiter) end(result json.RawMessage, err error) {
	m := w.memory
	m.mu.Lock()
	if w.ended {
		m.mu.Unlock()
		return
	}
	w.ended = true
	m.takeOut(w)
	timer, unwatch := w.timer, w.unwatch
	m.mu.Unlock()
	if timer != nil {
		timer.Stop()
		unwatch()
	}
	w.call.Answered(result, err)
}

// takeOut takes a call out of its queue, if it waits. The caller holds mu.
func (m *Memory) takeOut(w *waiter) {
	if w.element == nil {
		return
	}
	l := m.queues[w.call.URI]
	l.waiting.Remove(w.element)
	w.element = nil
	m.count(w, -w.size())
	m.forget(w.call.URI, l)
}

// dispatch starts calls of a URI while functions are free.
func (m *Memory) dispatch(uri string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.queues[uri]
	if l == nil {
		return
	}
	for _, s := range l.servers {
		for s.free > 0 && l.waiting.Len() > 0 {
			w, _ := l.waiting.Front().Value.(*waiter)
			m.takeOut(w)
			s.free--
			go m.run(s, w) // ends with the function
		}
	}
}

// run answers a call, and then calls that have come meanwhile.
func (m *Memory) run(s *server, w *waiter) {
	for w != nil {
		w.answer(s)
		w = m.next(s, w.call.URI)
	}
}

// next returns the next call for s; without one s is free for one call more.
func (m *Memory) next(s *server, uri string) *waiter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.queues[uri]
	if l == nil || l.waiting.Len() == 0 || !slices.Contains(l.servers, s) {
		s.free++
		return nil
	}
	w, _ := l.waiting.Front().Value.(*waiter)
	m.takeOut(w)
	return w
}

// answer runs the function, unless the call has expired.
func (w *waiter) answer(s *server) {
	if w.ctx.Err() != nil || !time.Now().Before(w.until) {
		return // its timer or its context ends it
	}
	ctx, cancel := context.WithDeadline(w.ctx, w.until)
	defer cancel()
	result, err := w.guarded(ctx, s)
	if ctx.Err() != nil {
		return // too late
	}
	if err == nil && result != nil && !json.Valid(result) {
		err = errNotJSON
	}
	if err != nil {
		result = ErrorResult(err)
	}
	w.end(result, nil)
}

// guarded runs the function so that a panic ends one call, not the process.
func (w *waiter) guarded(ctx context.Context, s *server) (result json.RawMessage, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	if s.function != nil {
		return s.function(ctx, w.call.Args)
	}
	return s.stream(ctx, w.call.Args, func(result json.RawMessage) error { return w.send(ctx, result) })
}

// send hands over a result that is not the last one.
func (w *waiter) send(ctx context.Context, result json.RawMessage) error {
	switch {
	case w.call.Stream == nil:
		return ErrOneResult
	case result != nil && !json.Valid(result):
		return errNotJSON
	}
	return w.call.Stream.Send(ctx, result)
}
