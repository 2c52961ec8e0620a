package socket

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
)

const (
	// shortName is the length up to which each answer of juggler.0 repeats the name of its
	// request; a longer one only if it fits into memory, since many answers may wait behind
	// a late one.
	shortName = 128
	// mostEscaped is how many bytes of JSON one byte of text may become.
	mostEscaped = 6
)

// promise is a request that has to be answered, in its turn.
//
// Guarded by session.mu.
type promise struct {
	request
	session *session

	kept    int          // bytes of the request that count
	known   bool         // the answer is known
	ack     *frame       // or nack, when it is known; nil if the client does not want one
	nacked  bool         // ack is a nack
	left    bool         // the answer was sent
	pending *pendingCall // of a Call of juggler.1
	result  *frame       // of a call, when it came before the ack had left
	ends    Kind         // of result
}

// promised adds a request to the promises, which are answered in order. It waits while too
// many are open, and returns nil if the socket is told to end.
func (s *session) promised(r request) *promise {
	kept := r.size()
	if !s.server.take(&s.account, kept) {
		r.refuse(errMemory)
		r.args, kept = nil, 0
	}
	defer s.turns.work() // when mu is free
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.promises) >= mostPromises && !s.saidBye {
		s.turns.leave()
		s.changed.Wait()
	}
	if s.saidBye {
		s.account.Give(kept)
		return nil
	}
	p := &promise{request: r, session: s, kept: kept}
	s.promises = append(s.promises, p)
	return p
}

// done is called with the broker's answer to a request.
func (p *promise) done(err error) { p.settled(answer{kind: Ack}, err) }

// settled answers a request: with ack, or with a refusal for an error.
func (p *promise) settled(ack answer, err error) {
	s := p.session
	a := ack
	if err != nil {
		a = s.dialect.refusal(err)
	}
	a.id, a.forKind = p.id, p.kind
	if n := len(p.uri) + len(p.channel); n <= shortName || s.account.has(n*mostEscaped) {
		a.uri, a.channel = p.uri, p.channel
	}
	var f *frame
	if err != nil || p.id != "" || !s.dialect.isNew() {
		f = s.frameOf(a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || p.kind != Call { // an accepted call goes on
		p.release()
	}
	if s.over {
		drop(f) // the socket has ended
		return
	}
	p.known, p.ack, p.nacked = true, f, err != nil
	s.settle()
}

// answered ends a call, for whatever reason.
func (p *promise) answered(result json.RawMessage, err error) {
	s := p.session
	if errors.Is(err, broker.ErrExpired) {
		s.server.stats.expired.Add(1)
	}
	a, f := p.lastFrame(result, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.release()
	if p.pending != nil && p.pending.ended {
		drop(f) // it has ended by a result that was too long
		return
	}
	s.calls--
	s.forget(p)
	switch {
	case f == nil:
	case s.over:
		f.drop() // the socket has ended
	case p.left:
		s.send(a.kind, f)
	default:
		p.result, p.ends = f, a.kind
	}
	s.leaveIfIdle()
}

// lastFrame returns the answer to a client about the end of its call, and its frame; nil:
// no frame.
func (p *promise) lastFrame(result json.RawMessage, err error) (answer, *frame) {
	s := p.session
	a := p.outcome(result, err)
	if s.ctx.Err() != nil {
		return a, nil // the socket has ended
	}
	f, err := s.resultOf(a)
	if err == nil {
		return a, f
	}
	if !s.dialect.isNew() { // juggler.0 cannot express it
		s.end(endBudget, websocket.CloseTryAgainLater, "")
		return a, nil
	}
	a = p.outcome(nil, codedError(err))
	return a, s.frameOf(a)
}

// outcome returns the answer to a client about the end of its call. juggler.0 can express
// a result only.
func (p *promise) outcome(result json.RawMessage, err error) answer {
	a := answer{kind: Res, id: p.id, uri: p.uri, args: result, content: p.content}
	switch {
	case err == nil:
		return a
	case errors.Is(err, broker.ErrExpired):
		a.kind = Exp
		return a
	case errors.Is(err, context.Canceled):
		err = errCanceled
	case errors.Is(err, broker.ErrClosed):
		err = codedError(err)
	}
	a.args, a.content, a.failed = broker.ErrorResult(err), broker.JSON, true
	return a
}

// release gives back the memory that counts for the request. The caller holds mu.
func (p *promise) release() {
	p.session.account.Give(p.kept)
	p.kept, p.args = 0, nil
}

// settle sends all answers whose turn has come. The caller holds mu.
func (s *session) settle() {
	for len(s.promises) > 0 && s.promises[0].known {
		p := s.promises[0]
		s.promises[0] = nil
		s.promises = s.promises[1:]
		kind := Ack
		if p.nacked {
			kind = Nack
		}
		if p.ack != nil {
			s.send(kind, p.ack)
		}
		p.left, p.ack = true, nil
		s.sendEarly(p)
	}
	if len(s.promises) == 0 {
		s.promises = nil
	}
	s.changed.Broadcast()
	s.leaveIfIdle()
}

// sendEarly sends the results of a call that came before its ack had left. The caller holds
// mu.
func (s *session) sendEarly(p *promise) {
	if p.pending != nil {
		for _, f := range p.pending.early {
			s.send(Res, f)
		}
		p.pending.early = nil
	}
	if p.result != nil {
		s.send(p.ends, p.result)
		p.result = nil
	}
}

// dropFrames drops the frames that were not sent. The caller holds mu.
func (p *promise) dropFrames() {
	drop(p.ack)
	drop(p.result)
	if p.pending != nil {
		for _, f := range p.pending.early {
			f.drop()
		}
		p.pending.early = nil
	}
}
