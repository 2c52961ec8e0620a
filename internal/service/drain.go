package service

import (
	"context"
	"time"
)

// socketGoodbye is how much earlier than calls over HTTP/2 sockets end that still have
// calls, at most, so that they are told so before their connections are closed.
const socketGoodbye = time.Second

// leavePush has who pushes come to the process that has taken over.
func (s *service) leavePush() {
	if s.push == nil || s.isPublic() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	_ = s.push.Shutdown(ctx) // the time limit is the answer to an error
}

// drain has all callers leave (R17), and returns how many calls were cut. hurry, when
// closed, is the end of the time.
func (s *service) drain(timeout time.Duration, hurry <-chan struct{}) (cut int) {
	s.leavePush()
	left := make(chan int)
	go func() { left <- s.drainSockets(timeout-min(timeout/10, socketGoodbye), hurry) }()
	cut = s.relay.Drain(timeout, hurry) // which waits for the connections of sockets, too
	return cut + <-left
}

func (s *service) drainSockets(timeout time.Duration, hurry <-chan struct{}) (cut int) {
	if s.sockets == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	go func() { // ends with the drain
		select {
		case <-hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.sockets.Drain(ctx)
}
