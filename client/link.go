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
	dialect  dialect
	id       string        // that the server has for it; "" in juggler.0
	ttl      time.Duration // of its token, from the start; 0: any time
	longest  int           // most bytes of a message that the server takes; 0: not known
	wire     *corked
	options  *Options
	counts   *counts
	events   receiver
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
	// results are those before it, of a stream: as many as it has credit for.
	results chan json.RawMessage
	sent    bool // by link.mu: handed to the network
	gone    bool // by link.mu: nobody waits any more
	taken   bool // by link.mu: a call that was acknowledged
}

// reply is how a request has ended.
type reply struct {
	result json.RawMessage
	err    error
	ttl    time.Duration // of a new token
}

// receiver gets what nobody has asked for by a request.
type receiver interface {
	// deliver gives an event to all who have subscribed.
	deliver(Event)
	// revoke ends subscriptions, as the server has.
	revoke(topic)
	// missed says that the server has missed events.
	missed(topic)
}

func newLink(ws *websocket.Conn, d dialect, wire *corked, c *Client) *link {
	l := &link{
		ws: ws, dialect: d, wire: wire, options: &c.options, counts: &c.counts, events: c,
		wake: make(chan struct{}, 1), done: make(chan struct{}), waiting: map[string]*waiting{},
	}
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
	if l.ttl > 0 && l.options.Token != nil {
		l.aside.Go(l.renew)
	}
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
		w.reply <- reply{err: &DisconnectedError{Request: w.kind.request(), Name: w.name, Sent: w.sent, Cause: why}}
	}
	l.wire.Close() // not ws, which under TLS would say goodbye to who may not read
}

// largestBuffer is how much of a reader's buffer is kept from message to message.
const largestBuffer = 64 << 10

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
		a, err := l.dialect.parse(body.Bytes())
		if err != nil {
			return fmt.Errorf("the server has sent what is no message: %w", err)
		}
		if err := l.take(&a); err != nil {
			return err
		}
		if body.Cap() > largestBuffer {
			body = bytes.Buffer{}
		}
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
func (l *link) take(a *answer) error {
	if l.options.Trace != nil {
		l.traceAnswer(a)
	}
	switch a.kind { //nolint:exhaustive // the others are not for clients
	case kindAck:
		l.counts.acks.Add(1)
		l.acknowledged(a)
	case kindNack:
		l.counts.nacks.Add(1)
		w := l.remove(a.id)
		switch {
		case w == nil:
		case a.code == unknownCode:
			w.reply <- reply{err: &DisconnectedError{Request: w.kind.request(), Name: w.name, Sent: true, Cause: errors.New("the server says: " + a.message)}}
		default:
			w.reply <- reply{err: &RefusedError{Request: w.kind.request(), Name: w.name, Code: a.code, Message: a.message}}
		}
	case kindRes:
		return l.result(a)
	case kindExp:
		if w := l.remove(a.id); w != nil {
			w.reply <- reply{err: &ExpiredError{Request: w.kind.request(), Name: w.name, After: w.timeout, Taken: true}}
		}
	case kindUnsb:
		l.events.revoke(topicOf(a.channel, a.pattern))
	case kindGap:
		l.events.missed(topicOf(a.channel, a.pattern))
	case kindEvnt:
		l.counts.events.Add(1)
		l.events.deliver(Event{ID: a.id, Channel: a.channel, Pattern: a.pattern, Args: a.args})
	}
	return nil
}

// unknownCode is of a request that the server has lost sight of: it may have been served.
const unknownCode = 504

// canceledCode is of the last result of a call that nobody wants any more.
const canceledCode = 499

// result hands a result to who waits for it.
//
// Errors: of a server that sends more than it may.
func (l *link) result(a *answer) error {
	if a.more {
		l.mu.Lock()
		w := l.waiting[a.id]
		l.mu.Unlock()
		if w == nil {
			return nil
		}
		select {
		case w.results <- a.args:
			return nil
		default:
			return fmt.Errorf("the server has sent more results of %s than it may", w.name)
		}
	}
	w := l.remove(a.id)
	switch {
	case w == nil && a.code != canceledCode:
		l.counts.late.Add(1)
	case w == nil:
	case a.failure != nil:
		f := readFailure(a.failure)
		l.counts.results.Add(1)
		w.reply <- reply{err: &FunctionError{URI: w.name, Code: f.Code, Message: f.Message, Result: a.failure}}
	default:
		l.counts.results.Add(1)
		w.reply <- reply{result: a.args}
	}
	return nil
}

// acknowledged ends a request, but a call, which has a result yet to come. It may come
// behind the result.
func (l *link) acknowledged(a *answer) {
	l.mu.Lock()
	w := l.waiting[a.id]
	if w == nil {
		l.mu.Unlock()
		return
	}
	if w.kind == kindCall {
		w.taken = true
		l.mu.Unlock()
		return
	}
	l.delete(a.id)
	l.mu.Unlock()
	w.reply <- reply{ttl: a.ttl}
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

// forget is remove for who waits no longer, because of why. A frame that was not written
// yet will not be; the server is told of a call that is not wanted any more. One that has
// expired here has expired there.
func (l *link) forget(w *waiting, why error) (taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.waiting[w.id]
	l.delete(w.id)
	w.gone = true
	if waits && w.sent && w.kind == kindCall && !errors.Is(why, context.DeadlineExceeded) {
		l.control(l.dialect.cancel(w.id))
	}
	return w.taken
}

// control queues what has no answer, if the dialect has it. By mu. There is one of them
// for each call, or for many results of one, so that they need no bound.
func (l *link) control(frame []byte) {
	if frame != nil && l.err == nil {
		l.enqueue(outgoing{frame: frame})
	}
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

// tooLongCode is that of a request that is not sent since it is too long.
const tooLongCode = 413

// push queues a request. Its reply comes, in any case, unless it is forgotten.
func (l *link) push(r request) *waiting {
	w := &waiting{request: r, id: l.dialect.newID(), reply: make(chan reply, 1)}
	if r.credit > 0 {
		w.results = make(chan json.RawMessage, r.credit)
	}
	frame := l.dialect.frame(r, w.id)
	if l.longest > 0 && len(frame) > l.longest { // it would end the connection, and all that is under way
		w.reply <- reply{err: &RefusedError{
			Request: r.kind.request(), Name: r.name, Code: tooLongCode,
			Message: fmt.Sprintf("a message of %d bytes, the server takes %d", len(frame), l.longest),
		}}
		return w
	}
	if l.options.Trace != nil {
		l.traceRequest(r, w.id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		w.reply <- reply{err: &DisconnectedError{Request: r.kind.request(), Name: r.name, Cause: l.err}}
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
