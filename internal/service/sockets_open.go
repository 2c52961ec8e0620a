package service

import (
	"net/http"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
)

// openSockets makes what serves callers over WebSocket, if they have a path.
func (s *service) openSockets() (err error) {
	if len(s.cfg.Socket.Paths) == 0 {
		return nil
	}
	o := s.asked
	o.Socket, o.Verifier, o.Cookie, o.Log = s.cfg.Socket, s.verifier, s.cfg.Auth.Cookie, s.log
	beyond, err := s.workerMethods()
	if err != nil {
		return err
	}
	o.Beyond.Methods = beyond.Methods
	s.sockets, err = OpenSockets(o)
	return err
}

// socketsAlone reports whether no endpoint serves calls, and none will.
func (s *service) socketsAlone() bool { return socketsAlone(s.cfg) }

func socketsAlone(cfg *config.Config) bool { return len(cfg.Command) == 0 && len(cfg.Upstreams) == 0 }

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
