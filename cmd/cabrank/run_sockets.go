package main

import (
	"context"
	"net/http"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
	running "github.com/cabrank/cabrank/internal/service"
)

const (
	// Sockets have at most three quarters of the connections, so that calls over HTTP/2
	// find room however many pages are open.
	socketsNumerator, socketsDenominator = 3, 4
	// socketMemory is which part of the memory for callers sockets have at most.
	socketMemory = 4
	// socketGoodbye is how much earlier than calls over HTTP/2 sockets end that still have
	// calls, at most, so that they are told so before their connections are closed.
	socketGoodbye = time.Second
	// pagesMemory is which part of that memory the metrics pages of workers have at most.
	pagesMemory = 4
)

// openSockets makes what serves callers over WebSocket, if they have a path.
func (s *service) openSockets() (err error) {
	if len(s.cfg.Socket.Paths) == 0 {
		return nil
	}
	beyond, err := s.workerMethods()
	if err != nil {
		return err
	}
	s.sockets, err = running.OpenSockets(running.SocketOptions{Socket: s.cfg.Socket, Beyond: beyond, Verifier: s.verifier, Log: s.log})
	return err
}

// routes are the paths of the port that have a handler for callers over HTTP/1.
func (s *service) routes() map[string]http.Handler {
	routes := make(map[string]http.Handler)
	if s.sockets != nil {
		for _, path := range s.cfg.Socket.Paths {
			routes[path] = s.sockets
		}
	}
	return routes
}

// boundSockets bounds how many sockets there may be by how many connections may be.
func (s *service) boundSockets() {
	if s.sockets != nil {
		s.sockets.SetMost(int(s.relay.Stats().MostConnections * socketsNumerator / socketsDenominator))
	}
}

// setMemory tells how many bytes callers may take, of all kinds, and workers' metrics
// pages.
func (s *service) setMemory(bytes int64) {
	if s.scrape != nil {
		bytes -= s.scrape.store.SetMemory(bytes / pagesMemory)
	}
	if s.sockets != nil {
		waiting := min(int64(s.cfg.Socket.BufferTotal), bytes/socketMemory)
		s.sockets.SetBuffer(waiting)
		bytes -= waiting
	}
	s.relay.SetMemory(bytes)
	s.boundSockets()
}

func (s *service) socketSource() func() admin.SocketSample {
	if s.sockets == nil {
		return nil
	}
	return s.sockets.Sample
}

// openPush lets the application speak to sockets, where that is wanted.
func (s *service) openPush() error {
	if s.sockets == nil || !s.sockets.TakesPush() {
		return nil
	}
	on, _, err := s.listen(handover.Push, "push listening", s.cfg.Socket.Push, "socket.push", door.Listen)
	if err != nil {
		return err
	}
	s.push = s.sockets.ServePush(on, s.log)
	go s.follow(s.push) // ends with the server
	return nil
}

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
