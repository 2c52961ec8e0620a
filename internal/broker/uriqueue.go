package broker

import (
	"container/list"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// waiterBytes is what a call takes that waits, beside its URI and arguments.
const waiterBytes = 512

// line is the calls that wait for one URI, the oldest first, and who serves it.
// Guarded by Memory.mu.
type line struct {
	waiting list.List // of *waiter
	servers []*server
}

// server is one function, of either kind, with its free places.
type server struct {
	function Function
	stream   StreamFunction
	free     int
}

func (l *line) leave(s *server) {
	l.servers = slices.DeleteFunc(l.servers, func(other *server) bool { return other == s })
}

// waiter is a call that was taken and has not ended.
type waiter struct {
	memory *Memory
	ctx    context.Context //nolint:containedctx // of the caller: it ends the call, which outlives the function that began it
	call   Call
	until  time.Time

	// Guarded by Memory.mu.
	place   *list.Element // nil when it does not wait any more
	ended   bool
	timer   *time.Timer
	unwatch func() bool
}

func (w *waiter) size() int64 { return int64(waiterBytes + len(w.call.URI) + len(w.call.Args)) }

// line returns the one of a URI. The caller holds mu.
func (m *Memory) line(uri string) *line {
	l := m.lines[uri]
	if l == nil {
		l = &line{}
		m.lines[uri] = l
	}
	return l
}

// forget removes a line that nobody needs: URIs are the callers' choice. The caller
// holds mu.
func (m *Memory) forget(uri string, l *line) {
	if l.waiting.Len() == 0 && len(l.servers) == 0 && m.lines[uri] == l {
		delete(m.lines, uri)
	}
}

func (m *Memory) enqueue(w *waiter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[w.call.URI]
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
	w.place = m.line(w.call.URI).waiting.PushBack(w)
	m.count(w, w.size())
	return nil
}

// sourcePart is how many times as much memory of calls that wait as it leaves to others one
// source takes.
const sourcePart = 3

// hasRoom reports whether one more may wait. The caller holds mu.
func (m *Memory) hasRoom(w *waiter) bool {
	if m.options.WaitingBytes <= 0 {
		return true
	}
	left := m.options.WaitingBytes - m.waiting - w.size()
	source := w.source()
	return left >= 0 && (source == "" || m.waitingOf[source]+w.size() <= sourcePart*left)
}

// count notes that more bytes wait, or fewer. The caller holds mu.
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

// source is whose call it is; "" if nobody knows.
func (w *waiter) source() string {
	if w.call.Caller == nil {
		return ""
	}
	return w.call.Caller.Source
}

// watch ends the call in time, or with its caller.
func (w *waiter) watch() {
	m := w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.ended {
		return // somebody else's dispatch was quicker than this
	}
	w.timer = time.AfterFunc(time.Until(w.until), func() { w.end(nil, ErrExpired) })
	w.unwatch = context.AfterFunc(w.ctx, func() { w.end(nil, w.ctx.Err()) })
}

// end ends a call, whichever way comes first.
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

// takeOut takes a call out of its line, if it waits. The caller holds mu.
func (m *Memory) takeOut(w *waiter) {
	if w.place == nil {
		return
	}
	l := m.lines[w.call.URI]
	l.waiting.Remove(w.place)
	w.place = nil
	m.count(w, -w.size())
	m.forget(w.call.URI, l)
}

// dispatch starts calls of a URI while functions are free.
func (m *Memory) dispatch(uri string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[uri]
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

// run answers a call, and then those that have waited meanwhile.
func (m *Memory) run(s *server, w *waiter) {
	for w != nil {
		w.answer(s)
		w = m.next(s, w.call.URI)
	}
}

// next returns the call that s goes on with; without one its place is free.
func (m *Memory) next(s *server, uri string) *waiter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[uri]
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
		return // its timer or its caller ends it
	}
	ctx, cancel := context.WithDeadline(w.ctx, w.until)
	defer cancel()
	result, err := w.guarded(ctx, s)
	if ctx.Err() != nil {
		return // too late, by whatever clock
	}
	if err == nil && result != nil && !json.Valid(result) {
		err = errNotJSON
	}
	if err != nil {
		result = ErrorResult(err)
	}
	w.end(result, nil)
}

// guarded has a panic end one call, not the process.
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
