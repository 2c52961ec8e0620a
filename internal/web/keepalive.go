package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// silence is how long a caller over HTTP/1 may move no byte of a call, and have none.
const silence = time.Minute

// lateEnd is how long the end of an answer waits for that of its request, and mostLate how
// many bytes come meanwhile: behind more its connection ends, too.
const (
	lateEnd  = 250 * time.Millisecond
	mostLate = 256 << 10
)

// unsent is how much of an answer net/http keeps: more may wait for its caller.
const unsent = 2 << 10

// turnstile bounds how many requests are worked on at a time: half as many as there are CPUs,
// so that shards find one.
type turnstile chan struct{}

func newTurnstile() turnstile { return make(turnstile, max(runtime.GOMAXPROCS(0)/2, 1)) }

// mostInside is how long a request may be inside: then it waits for something that is not
// foreseen here, and keeps others out no longer.
const mostInside = 10 * time.Millisecond

// pass is the way of a request through the turnstile: it is inside while it works, and outside
// while it waits for bytes of its caller, or for its call.
//
// Concurrency: it is the handler's goroutine's. Until Begun no other one reads the body.
type pass struct {
	work   turnstile
	begun  bool
	inside atomic.Bool
	over   *time.Timer // behind mostInside
}

// enter waits until the request may be worked on. Whoever comes in lets all go first that are
// ready to run: woken by the one that leaves it would run ahead of them, and its successor, too.
func (p *pass) enter() {
	if p.inside.Load() {
		return
	}
	p.work <- struct{}{}
	p.inside.Store(true)
	if p.over == nil {
		p.over = time.AfterFunc(mostInside, p.leave)
	} else {
		p.over.Reset(mostInside)
	}
	runtime.Gosched()
}

// leave may be called from anywhere.
func (p *pass) leave() {
	if p.inside.CompareAndSwap(true, false) {
		<-p.work
	}
}

// end is the last that is done with a pass.
func (p *pass) end() {
	p.leave()
	p.over.Stop()
}

// passKey finds in the context of a request its pass.
type passKey struct{}

// Begun says, with the context of a request, that its call is open: from now on it waits for
// others, until it answers. Its body may be read by another goroutine.
func Begun(ctx context.Context) {
	if p, ok := ctx.Value(passKey{}).(*pass); ok {
		p.begun = true
		p.leave()
	}
}

// serveCall has a door serve a request, which may last. Its connection is kept.
func (s *HTTP1) serveCall(w http.ResponseWriter, r *http.Request, door http.Handler) {
	if v, ok := Conn(r).(interface{ Leaving() bool }); ok && v.Leaving() {
		w.Header().Set("Connection", "close")
	}
	through := &pass{work: s.work}
	through.enter()
	defer through.end()
	r = r.WithContext(context.WithValue(r.Context(), passKey{}, through))
	control := http.NewResponseController(w)
	body := &slowBody{ReadCloser: r.Body, control: control, pass: through}
	if r.Body == http.NoBody {
		body.end()
	}
	r.Body = body
	door.ServeHTTP(&slowAnswer{ResponseWriter: w, control: control, body: body, pass: through}, r)
	through.leave()
	body.stop()
}

// slowBody may come as slowly as its caller likes that sends a byte in time.
//
// Concurrency: one goroutine reads, another one stops it.
type slowBody struct {
	io.ReadCloser
	control *http.ResponseController
	pass    *pass

	reading sync.Mutex // held by Read
	mu      sync.Mutex // a leaf
	stopped bool
	ended   bool
}

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if !b.expect() {
		return 0, http.ErrBodyReadAfterClose
	}
	if !b.pass.begun {
		b.pass.leave()
		defer b.pass.enter()
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.end()
	}
	return n, err
}

// expect sets the time by which a byte has to come, if more is wanted.
func (b *slowBody) expect() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped && !b.ended {
		_ = b.control.SetReadDeadline(time.Now().Add(silence)) // a connection has one
	}
	return !b.stopped
}

// end lets the caller be silent from now on: net/http reads on, to know when it leaves.
func (b *slowBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.control.SetReadDeadline(time.Time{}) // as above
}

// left reports whether the request has not come to its end.
func (b *slowBody) left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ended
}

// stop has a read end that is under way when the answer is whole. The end of the request is
// mostly on its way: a connection that is closed before it comes may lose the answer.
func (b *slowBody) stop() {
	b.mu.Lock()
	b.stopped = true
	left := !b.ended
	if left {
		_ = b.control.SetReadDeadline(time.Now().Add(lateEnd)) // as above
	}
	b.mu.Unlock()
	if !left {
		return
	}
	b.reading.Lock()
	defer b.reading.Unlock()
	// net/http must not find the end: it would read on, and for the next request as well.
	if _, err := io.CopyN(io.Discard, b.ReadCloser, mostLate); errors.Is(err, io.EOF) {
		b.end()
	}
}

// slowAnswer may be taken as slowly as its caller likes that takes a byte in time.
type slowAnswer struct {
	http.ResponseWriter
	control *http.ResponseController
	body    *slowBody
	pass    *pass
	written int
}

// WriteHeader implements http.ResponseWriter.
func (a *slowAnswer) WriteHeader(status int) {
	a.pass.enter()
	a.extend()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *slowAnswer) Write(p []byte) (int, error) {
	if a.written += len(p); a.written >= unsent {
		a.pass.leave()
	}
	a.extend()
	return a.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (a *slowAnswer) FlushError() error {
	a.pass.leave()
	a.extend()
	return a.control.Flush()
}

// extend is called in front of all that is written. An answer that begins before its request
// has ended is the last one of its connection: what is left would be taken for a request.
func (a *slowAnswer) extend() {
	if a.body.left() {
		a.Header().Set("Connection", "close") // behind the head it has no effect
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(silence)) // a connection has one
}

// Unwrap is for http.ResponseController.
func (a *slowAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
