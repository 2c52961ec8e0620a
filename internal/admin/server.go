package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Limits of a Server. The callers are one kubelet and a few scrapers: what is
// above is a mistake or an attack, and must not take descriptors from the calls,
// nor their answers from the probes (crowd).
const (
	maxConnections = 256
	maxHeaderBytes = 16 << 10
	headerTimeout  = 5 * time.Second
	pageTimeout    = 10 * time.Second
	idleTimeout    = time.Minute
)

// Server is one HTTP listener with its pages.
//
// It is made listening, and ends with Shutdown. All methods may be called at
// the same time.
type Server struct {
	http     *http.Server
	listener net.Listener
	failed   chan error // at most one error, then closed
	released atomic.Bool
}

// serve answers on a listener with handler, at most connections callers at a time.
func serve(on net.Listener, handler http.Handler, connections int, log *slog.Logger) *Server {
	s := &Server{
		listener: on,
		failed:   make(chan error, 1),
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       pageTimeout,
			WriteTimeout:      2 * pageTimeout, // above pageTimeout, so that a late page is still a 503
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ConnState:         newCrowd(connections).changed,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	go s.run() // ends by Shutdown, which closes the listener; Failed tells of it
	return s
}

func (s *Server) run() {
	err := s.http.Serve(s.listener)
	if !errors.Is(err, http.ErrServerClosed) && !s.released.Load() {
		s.failed <- err
	}
	close(s.failed)
}

// Addr returns the address that is listened on, with the real port where 0 was
// asked for.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Failed gives an error if the listener dies, and is closed when the Server has
// stopped listening for whatever reason. A process should not go on without
// its probes, for it would look dead from outside.
func (s *Server) Failed() <-chan error { return s.failed }

// Release stops listening and serves those on who are connected, each for one
// more request: the socket lives on in another process. Shutdown, which has to
// follow, would leave a request without an answer that has just connected.
func (s *Server) Release() {
	s.released.Store(true)
	if file, ok := s.listener.(*ControlListener); ok {
		file.Release()
	}
	s.http.SetKeepAlivesEnabled(false)
	_ = s.listener.Close() // run sees that
}

// Shutdown stops listening, lets requests in progress finish until ctx ends,
// and then cuts them off. It returns nil, or the error of ctx if something had
// to be cut off. Nothing is left running afterwards, except handlers that the
// sources hold.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		// Close can only repeat what Shutdown met.
		_ = s.http.Close()
	}
	return err
}
