package socket

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cabrank/cabrank/internal/broker"
)

// promise is a request that has to be answered, in its turn.
//
// Guarded by session.mu.
type promise struct {
	request
	session *session

	ack     *frame // or nack, when it is known
	refused bool   // it is a nack
	result  *frame // of a call, when it came before the ack had left
	left    bool   // the ack has
}

// promised adds a request to those that are answered in order. It waits while too
// many are not, and returns nil if the socket is told to go.
func (s *session) promised(r request) *promise {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.promises) >= mostPromises && !s.saidBye {
		s.changed.Wait()
	}
	if s.saidBye {
		return nil
	}
	p := &promise{request: r, session: s}
	s.promises = append(s.promises, p)
	return p
}

// done is the broker's word on a request.
func (p *promise) done(err error) {
	a := answer{kind: Ack, id: p.id, forKind: p.kind, uri: p.uri, channel: p.channel}
	if err != nil {
		a.kind, a.code, a.message = Nack, codeOf(err), err.Error()
	}
	f := p.session.frameOf(a)
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	if p.session.over {
		f.drop() // nobody waits for it any more
		return
	}
	p.ack, p.refused = f, err != nil
	p.session.settle()
}

// answered is the end of a call.
func (p *promise) answered(result json.RawMessage, err error) {
	s := p.session
	var f *frame
	switch {
	case err == nil:
		f = s.frameOf(answer{kind: Res, id: p.id, uri: p.uri, args: result})
	case errors.Is(err, broker.ErrExpired):
		s.server.stats.expired.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	switch {
	case f == nil:
	case s.over:
		f.drop() // nobody waits for it any more
	case p.left:
		s.send(Res, f)
	default:
		p.result = f
	}
	s.leaveIfIdle()
}

// settle sends what has its turn. The caller holds mu.
func (s *session) settle() {
	for len(s.promises) > 0 && s.promises[0].ack != nil {
		p := s.promises[0]
		s.promises[0] = nil
		s.promises = s.promises[1:]
		kind := Ack
		if p.refused {
			kind = Nack
		}
		s.send(kind, p.ack)
		p.left, p.ack = true, nil
		if p.result != nil {
			s.send(Res, p.result)
			p.result = nil
		}
	}
	if len(s.promises) == 0 {
		s.promises = nil
	}
	s.changed.Broadcast()
	s.leaveIfIdle()
}

// call hands a call to the broker.
func (s *session) call(p *promise) {
	s.mu.Lock()
	full := s.calls >= s.server.options.MaxCalls
	if !full {
		s.calls++
	}
	s.mu.Unlock()
	switch {
	case full:
		p.done(errCalls)
		return
	case p.timeout < 0:
		s.uncount()
		p.done(errTimeout)
		return
	}
	s.calleeOf(p.uri).Call(s.ctx, broker.Call{
		Caller: s.caller, URI: p.uri, Args: p.args, Timeout: p.timeout,
		Accepted: func(err error) {
			if err != nil {
				s.uncount()
			}
			p.done(err)
		},
		Answered: p.answered,
	})
}

// callee has functions or methods.
type callee interface {
	Call(ctx context.Context, call broker.Call)
}

// calleeOf returns who answers calls of a URI. Only run calls it.
func (s *session) calleeOf(uri string) callee {
	methods := s.server.options.Methods
	if methods == nil || !methods.Takes(uri) {
		return s.server.options.Broker
	}
	s.methods = methods
	return methods
}

// uncount is for a call that was not taken.
func (s *session) uncount() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
}
