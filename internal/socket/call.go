package socket

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cabrank/cabrank/internal/broker"
)

// pendingCall is what a Call of juggler.1 has until it ends. It is a broker.Stream.
//
// Guarded by session.mu.
type pendingCall struct {
	promise *promise
	cancel  context.CancelFunc
	ended   bool
	credit  int      // results that it may send before its last one
	early   []*frame // results that came before the ack had left

	// For a function in another process.
	untold int // credit that the function was not told of
	told   int // credit that it was told of and has not used
}

// mostTold is how much credit a function in another process is told of at a time: it does
// not see what its caller has not read yet, and may send that many results more.
const mostTold = 32

// errEnded tells a function that its results are not taken any more.
var errEnded = errors.New("the call has ended")

// startCall hands a call to the broker.
func (s *session) startCall(p *promise) {
	ctx := s.ctx
	if s.dialect.isNew() {
		p.pending = &pendingCall{promise: p, credit: p.credit, untold: p.credit}
		ctx, p.pending.cancel = context.WithCancel(s.ctx)
	}
	if err := s.admit(p); err != nil {
		if p.pending != nil {
			p.pending.cancel()
		}
		p.done(err)
		return
	}
	call := broker.Call{
		Caller: s.caller, Share: &s.account, URI: p.uri, Content: p.content, Args: p.args, Timeout: p.timeout,
		IfServed: s.dialect.isNew(), Unsure: s.dialect.isNew(),
		Accepted: func(err error) {
			if err != nil {
				s.uncount(p)
			}
			p.done(err)
		},
		Answered: p.answered,
	}
	if p.streams {
		call.Stream = p.pending
	}
	s.calleeOf(p.uri).Call(ctx, call)
}

// callee answers calls: a Broker or Methods.
type callee interface {
	Call(ctx context.Context, call broker.Call)
}

// calleeOf returns the callee for calls of a URI. Only the reading goroutine calls it.
func (s *session) calleeOf(uri string) callee {
	if !s.server.isMethod(uri) {
		return s.server.options.Broker
	}
	s.methods = s.server.options.Methods
	return s.methods
}

func (s *Server) isMethod(uri string) bool {
	return s.options.Methods != nil && s.options.Methods.Takes(uri)
}

// admit counts a call, or returns why it may not be made.
func (s *session) admit(p *promise) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.calls >= s.server.options.MaxCalls:
		return errCalls
	case p.timeout < 0:
		return errTimeout
	case p.content != broker.JSON && !s.server.isMethod(p.uri):
		return errContent
	case p.pending != nil && s.byID[p.id] != nil:
		return errSameID
	}
	s.calls++
	if p.pending != nil {
		if s.byID == nil {
			s.byID = map[messageID]*pendingCall{}
		}
		s.byID[p.id] = p.pending
	}
	return nil
}

// uncount removes a call that was not taken.
func (s *session) uncount(p *promise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.forget(p)
}

// forget removes a call that has ended. The caller holds mu.
func (s *session) forget(p *promise) {
	if p.pending == nil {
		return
	}
	p.pending.ended = true
	p.pending.cancel()
	delete(s.byID, p.id)
	if len(s.byID) == 0 {
		s.byID = nil
	}
	s.changed.Broadcast() // a function may wait for credit
}

// callOf returns the call with an id, nil if it has ended or never existed.
func (s *session) callOf(id messageID) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// cancelCall cancels a call for its client. The broker then ends the call.
func (s *session) cancelCall(id messageID) {
	if c := s.callOf(id); c != nil {
		c.cancel()
	}
}

// grant adds to the credit of a call.
func (s *session) grant(id messageID, n int) {
	c := s.callOf(id)
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, mostCredit-c.credit)
	c.credit += n
	c.untold += n
	s.changed.Broadcast()
}

// Watch implements broker.Stream. f gets a part of the credit at a time, while the client
// reads the results before.
func (c *pendingCall) Watch(f func(credit int)) {
	go func() { // ends with the call
		for n := c.nextTold(); n > 0; n = c.nextTold() {
			f(n)
		}
	}()
}

// nextTold waits until a function in another process is to be told of credit, and returns
// how much; 0 at the end.
func (c *pendingCall) nextTold() (n int) {
	s := c.promise.session
	for {
		if !s.out.awaitRoom() {
			return 0
		}
		s.mu.Lock()
		for !c.isOver() && (c.untold == 0 || c.told > mostTold/2) {
			s.changed.Wait()
		}
		switch {
		case c.isOver():
			s.mu.Unlock()
			return 0
		case s.out.hasRoomNow():
			n = min(c.untold, mostTold-c.told)
			c.untold, c.told = c.untold-n, c.told+n
			s.mu.Unlock()
			return n
		}
		s.mu.Unlock()
	}
}

// isOver reports whether results are not taken any more. The caller holds mu.
func (c *pendingCall) isOver() bool {
	s := c.promise.session
	return c.ended || s.over || s.saidBye
}

// Offer implements broker.Stream.
func (c *pendingCall) Offer(result json.RawMessage) bool {
	s := c.promise.session
	f, err := c.resultOf(result)
	if err != nil {
		c.promise.answered(nil, err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.ended || s.over || c.credit == 0:
		f.drop()
		return false
	case !c.promise.left:
		c.early = append(c.early, f)
	default:
		s.send(Res, f)
	}
	c.credit--
	c.told--
	s.changed.Broadcast()
	return true
}

// Send implements broker.Stream.
func (c *pendingCall) Send(ctx context.Context, result json.RawMessage) error {
	s := c.promise.session
	f, err := c.resultOf(result)
	if err != nil {
		return err
	}
	if c.sendNow(f) {
		return nil
	}
	defer context.AfterFunc(ctx, s.wakeAll)()
	for {
		if err := c.awaitCredit(ctx); err != nil {
			f.drop()
			return err
		}
		if c.sendNow(f) {
			return nil
		}
		s.out.awaitRoomUntil(ctx)
	}
}

func (c *pendingCall) resultOf(result json.RawMessage) (*frame, error) {
	p := c.promise
	return p.session.resultOf(answer{kind: Res, id: p.id, args: result, content: p.content, more: true})
}

// sendNow sends a result if it has credit and fits.
func (c *pendingCall) sendNow(f *frame) bool {
	s := c.promise.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.maySend() || !s.out.replyIfRoom(f) {
		return false
	}
	c.credit--
	s.server.stats.out[Res].Add(1)
	return true
}

func (c *pendingCall) maySend() bool { return c.promise.left && !c.ended && c.credit > 0 }

// awaitCredit waits until a result may be sent. An error means that the call is over.
func (c *pendingCall) awaitCredit(ctx context.Context) error {
	s := c.promise.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case c.isOver():
			return errEnded
		case c.maySend():
			return nil
		}
		s.changed.Wait()
	}
}

// wakeAll makes all waiting goroutines look again.
func (s *session) wakeAll() {
	s.mu.Lock()
	s.changed.Broadcast()
	s.mu.Unlock()
	s.out.wakeAll()
}
