package service

import "time"

// socketGoodbye is how much earlier than calls over HTTP/2 sockets end that still have
// calls, at most, so that they are told so before their connections are closed.
const socketGoodbye = time.Second

// drain has all callers leave (R17), and returns how many calls were cut. hurry, when
// closed, is the end of the time.
func (s *service) drain(timeout time.Duration, hurry <-chan struct{}) (cut int) {
	s.leavePush()
	left := make(chan int)
	go func() { left <- s.drainSockets(timeout-min(timeout/10, socketGoodbye), hurry) }()
	cut = s.relay.Drain(timeout, hurry) // which waits for the connections of sockets, too
	return cut + <-left
}
