package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// link is one connection, with the requests that are under way on it.
//
// Life: dial, requests, then serve until it ends. What it had under way ends with it.
type link struct {
	ws       *websocket.Conn
	wire     *corked
	options  *Options
	counts   *counts
	deliver  func(Event)
	lastRead atomic.Int64 // when something came last, in ns

	wake  chan struct{}  // there is something to write; holds one
	done  chan struct{}  // closed at its end
	aside sync.WaitGroup // goroutines beside read

	mu      sync.Mutex
	queue   []outgoing
	queued  int           // bytes of it
	noRoom  chan struct{} // closed when there is room again; nil while nobody waits
	waiting map[string]*waiting
	closing bool  // by our own wish
	err     error // why it has ended
}

// outgoing is a frame that has to be written; nil is the one that closes. w is nil if
// nobody waits for an answer.
type outgoing struct {
	frame []byte
	w     *waiting
}

// waiting is a request whose answer has not come.
//
// Ordering: it is known before its frame is written, so that no answer is too early.
type waiting struct {
	request
	id    string
	reply chan reply // holds the one reply
	sent  bool       // by link.mu: handed to the network
	gone  bool       // by link.mu: nobody waits any more
	taken bool       // by link.mu: a call that was acknowledged
}

// reply is how a request has ended.
type reply struct {
	result json.RawMessage
	err    error
}

func newLink(ws *websocket.Conn, wire *corked, o *Options, n *counts, deliver func(Event)) *link {
	l := &link{
		ws: ws, wire: wire, options: o, counts: n, deliver: deliver,
		wake: make(chan struct{}, 1), done: make(chan struct{}), waiting: map[string]*waiting{},
	}
	ws.SetReadLimit(o.ReadLimit)
	ws.SetPongHandler(func(string) error { return l.heard() })
	answer := ws.PingHandler()
	ws.SetPingHandler(func(text string) error {
		_ = answer(text) // if it cannot be written, the writer sees it too
		return l.heard()
	})
	return l
}

// heard puts off the end by silence.
func (l *link) heard() error {
	now := time.Now()
	l.lastRead.Store(now.UnixNano())
	return l.ws.SetReadDeadline(now.Add(l.options.Ping * 3 / 2))
}

// serve reads and writes until the connection ends, and returns why.
func (l *link) serve() error {
	_ = l.heard() // a connection that is dead ends read
	l.aside.Go(l.write)
	l.end(l.read())
	l.aside.Wait()
	return l.err
}

// end ends all that is under way; the first reason counts.
func (l *link) end(why error) {
	l.mu.Lock()
	first := l.err == nil
	if l.closing {
		why = ErrClosed
	}
	var left []*waiting
	if first {
		l.err = why
		for _, w := range l.waiting {
			left = append(left, w)
		}
		clear(l.waiting)
		l.queue, l.queued = nil, 0
		close(l.done)
	}
	l.mu.Unlock()
	for _, w := range left {
		w.reply <- reply{err: &DisconnectedError{Request: w.kind.String(), Name: w.name, Sent: w.sent, Cause: why}}
	}
	l.ws.Close()
}

// read takes messages until the connection ends.
func (l *link) read() error {
	var body bytes.Buffer
	for {
		_, r, err := l.ws.NextReader()
		if err != nil {
			return l.explain(err)
		}
		_ = l.heard() // see serve
		body.Reset()
		if _, err := body.ReadFrom(r); err != nil {
			return l.explain(err)
		}
		var a answer
		if err := json.Unmarshal(body.Bytes(), &a); err != nil {
			return fmt.Errorf("the server has sent what is no message: %w", err)
		}
		l.take(&a)
	}
}

// explain says in other words what websocket says of an end.
func (l *link) explain(err error) error {
	closed, isClose := errors.AsType[*websocket.CloseError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case isClose && closed.Code == websocket.CloseAbnormalClosure:
		return errors.New("the server has dropped the connection")
	case isClose:
		return fmt.Errorf("the server has closed the connection with %d %s: %w", closed.Code, closed.Text, err)
	case errors.Is(err, websocket.ErrReadLimit):
		return fmt.Errorf("the server has sent a message of more than %d bytes", l.options.ReadLimit)
	case isNet && timeout.Timeout():
		return fmt.Errorf("the server was silent for %v", l.options.Ping*3/2)
	}
	return err
}

// take has a message of the server do what it does. Kinds that are not known are
// nothing.
func (l *link) take(a *answer) {
	if l.options.Trace != nil {
		l.traceAnswer(a)
	}
	switch p := &a.Payload; a.Meta.Type { //nolint:exhaustive // the others are not for clients
	case kindAck:
		l.counts.acks.Add(1)
		l.acknowledged(p.For)
	case kindNack:
		l.counts.nacks.Add(1)
		if w := l.remove(p.For); w != nil {
			w.reply <- reply{err: &RefusedError{Request: w.kind.String(), Name: w.name, Code: p.Code, Message: p.Message}}
		}
	case kindRes:
		w := l.remove(p.For)
		if w == nil {
			l.counts.late.Add(1)
			return
		}
		l.counts.results.Add(1)
		w.reply <- reply{result: p.Args}
	case kindEvnt:
		l.counts.events.Add(1)
		l.deliver(Event{ID: p.For, Channel: p.Channel, Pattern: p.Pattern, Args: p.Args})
	}
}

// acknowledged ends a request, but a call, which has a result yet to come. It may come
// behind the result.
func (l *link) acknowledged(id string) {
	l.mu.Lock()
	w := l.waiting[id]
	if w == nil {
		l.mu.Unlock()
		return
	}
	if w.kind == kindCall {
		w.taken = true
		l.mu.Unlock()
		return
	}
	l.delete(id)
	l.mu.Unlock()
	w.reply <- reply{}
}

// remove takes a request out, or returns nil if it is not waited for.
func (l *link) remove(id string) *waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waiting[id]
	l.delete(id)
	return w
}

// delete takes a request out. By mu.
func (l *link) delete(id string) {
	delete(l.waiting, id)
	l.makeRoom()
}

// makeRoom has those look again who wait for room. By mu.
func (l *link) makeRoom() {
	if l.noRoom != nil {
		close(l.noRoom)
		l.noRoom = nil
	}
}

// forget is remove for who waits no longer. A frame that was not written yet will not
// be.
func (l *link) forget(w *waiting) (taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delete(w.id)
	w.gone = true
	return w.taken
}

// room waits until another request may be queued.
//
// Errors: that of ctx; nil when the connection has ended, which push says.
func (l *link) room(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.queued < mostUnsent && len(l.waiting) < mostUnderWay {
			l.mu.Unlock()
			return nil
		}
		if l.noRoom == nil {
			l.noRoom = make(chan struct{})
		}
		look := l.noRoom
		l.mu.Unlock()
		select {
		case <-look:
		case <-l.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// push queues a request. Its reply comes, in any case, unless it is forgotten.
func (l *link) push(r request) *waiting {
	w := &waiting{request: r, id: newID(), reply: make(chan reply, 1)}
	frame := r.frame(w.id)
	if l.options.Trace != nil {
		l.traceRequest(r, w.id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		w.reply <- reply{err: &DisconnectedError{Request: r.kind.String(), Name: r.name, Cause: l.err}}
		return w
	}
	l.waiting[w.id] = w
	l.enqueue(outgoing{frame, w})
	return w
}

// enqueue has a frame written. By mu.
func (l *link) enqueue(o outgoing) {
	l.queue = append(l.queue, o)
	l.queued += len(o.frame)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// bye has the connection closed behind all that is queued, and ends it if that takes
// too long.
func (l *link) bye() {
	l.mu.Lock()
	l.closing = true
	if l.err == nil {
		l.enqueue(outgoing{})
	}
	l.mu.Unlock()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-l.done:
	case <-late.C:
		l.end(ErrClosed)
	}
}
