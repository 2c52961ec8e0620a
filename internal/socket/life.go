package socket

import (
	"errors"
	"io"
	"time"

	"github.com/gorilla/websocket"
)

// linger is how long the end of a socket may take: queued frames are written, and the
// client answers the close frame.
const linger = 2 * time.Second

// start starts the reading: by a goroutine of the pool whenever something has come in, or
// by one for its whole life if the connection cannot be watched.
func (s *session) start() {
	if post, err := s.server.watcher.Watch(plain(s.net), s); err == nil {
		s.post = post
	}
	s.awaitToken()
	s.opening = s.identity.hasChannels()
	if s.opening || !s.sleep() {
		s.server.readers.do(s)
	}
}

// do reads what has come in, and cleans up at the end. A goroutine of the pool calls it.
func (s *session) do() {
	if s.opening {
		s.opening = false
		s.openChannels()
		if s.turns.rest(); s.sleep() {
			return
		}
	}
	err := s.read()
	if err != nil {
		s.turns.rest()
		s.finish(err)
	}
}

// sleep reports whether the socket needs no goroutine until Wake is called. Then it must
// not be read from.
func (s *session) sleep() bool {
	if s.post == nil {
		return false
	}
	s.asleep.Store(true)
	if !s.hasSaidBye() && s.post.Arm() == nil {
		return true
	}
	// It ends, and may have been woken for that already.
	return !s.asleep.CompareAndSwap(true, false)
}

// Wake implements watch.Sleeper. It is also called wherever the socket may have ended.
func (s *session) Wake() {
	if s.asleep.CompareAndSwap(true, false) {
		s.server.readers.do(s)
	}
}

// finish is the end of a socket.
func (s *session) finish(err error) {
	if s.tokenTimer != nil {
		s.tokenTimer.Stop()
	}
	s.setReason(s.out.cause())
	s.setReason(reasonOf(err))
	s.explain(err)
	s.cancel()
	if s.methods != nil {
		s.methods.Left(s.caller)
	}
	s.stop()
	for topic := range s.topics {
		s.part(topic)
		s.server.hub.unsubscribe(topic, s)
	}
	s.out.end(nil, false)
	if code, _ := farewell(s.dialect, err); code != 0 || errors.Is(err, websocket.ErrReadLimit) {
		s.listenOn()
	}
	select {
	case <-s.out.drained():
	case <-time.After(linger):
	}
	s.out.abort()
	if s.post != nil {
		s.post.Leave()
	}
	s.server.remove(s)
}

// stop ends all waits for this socket.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, p := range s.promises {
		p.dropFrames()
	}
	s.promises = nil
	s.changed.Broadcast()
}

func drop(f *frame) {
	if f != nil {
		f.drop()
	}
}

// listenOn reads and drops what the client still sends, so that the kernel does not reset
// the connection before the client has read why it ends.
func (s *session) listenOn() {
	_ = s.net.SetReadDeadline(time.Now().Add(linger / 2)) // without it the next line ends, too
	_, _ = io.CopyN(io.Discard, s.net, 1<<20)
}

// bye sends a close frame, once, and gives the client some time to answer it.
func (s *session) bye(code int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byeLocked(code, why)
}

func (s *session) byeLocked(code int, why string) {
	if s.saidBye {
		return
	}
	s.saidBye = true
	payload := websocket.FormatCloseMessage(s.dialect.closeCode(s.reason, code), shortened(why))
	s.out.end(newFrame(control(opClose, payload), &s.account), false)
	_ = s.net.SetReadDeadline(time.Now().Add(linger)) // a connection that is gone ends by itself
	s.changed.Broadcast()
	s.Wake()
}

func (s *session) hasSaidBye() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saidBye
}

// leave ends the socket with 1001 as soon as it is idle.
func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	s.leaveIfIdle()
}

// leaveIfIdle ends a leaving socket that is idle. The caller holds mu.
func (s *session) leaveIfIdle() {
	if s.leaving && s.calls == 0 && len(s.promises) == 0 {
		s.reason = s.reason.or(endDrain)
		s.byeLocked(websocket.CloseGoingAway, "")
	}
}

// leaveNow ends the socket with 1001 and returns how many calls it had.
func (s *session) leaveNow() (calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saidBye {
		calls = s.calls
	}
	s.reason = s.reason.or(endDrain)
	s.byeLocked(websocket.CloseGoingAway, "")
	return calls
}

// abort ends the socket at once.
func (s *session) abort(reason endReason) {
	s.setReason(reason)
	s.out.abort()
}

func (s *session) setReason(reason endReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = s.reason.or(reason)
}

func (s *session) endedBy() endReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// onClose answers with the client's own code. Source: RFC 6455, section 5.5.1.
func (s *session) onClose(code int, _ string) error {
	s.bye(code, "")
	return nil
}
