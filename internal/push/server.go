package push

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/cabrank/cabrank/internal/door"
)

const (
	mostConnections = 256
	// strangerTime is how long a connection may stay that has brought no good request.
	strangerTime = 10 * time.Second
	// patience is how long a connection has been without a request at least when one that
	// has brought good ones gives way.
	patience        = 10 * time.Second
	mostHeaderBytes = 16 << 10
	// headerTime is for the first bytes of a connection, and for each head.
	headerTime = 5 * time.Second
	// requestTime is for a request with its body.
	requestTime = 10 * time.Second
	// idleTime ends a connection without a request.
	idleTime = 5 * time.Minute
)

// Server is a listener for applications: HTTP/1.1, and gRPC over HTTP/2 without TLS.
//
// Life: Serve, then maybe Release, Shutdown.
// Concurrency: every method may be called from anywhere.
type Server struct {
	address net.Addr
	door    *door.Door
	http    *http.Server
	grpc    *grpc.Server
	plain   *door.Annex // of http
	framed  *door.Annex // of grpc

	conns   conns
	serving sync.WaitGroup // of both servers, and of first bytes
	failed  chan error     // at most one error, then closed
}

// Serve answers on a listener, which belongs to the Server from then on. token is what
// requests have to bring; "" is none.
func Serve(on net.Listener, sockets Sockets, token string, log *slog.Logger) *Server {
	gate := newGate(token)
	s := &Server{
		address: on.Addr(), plain: door.NewAnnex(), framed: door.NewAnnex(), grpc: newGRPC(sockets, gate),
		http: &http.Server{
			Handler: newHandler(sockets, gate), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime,
			WriteTimeout: 2 * requestTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeaderBytes,
			ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			ConnContext: func(ctx context.Context, nc net.Conn) context.Context { return context.WithValue(ctx, connKey{}, nc) },
		},
		failed: make(chan error, 1), conns: conns{all: make(map[*conn]struct{})},
	}
	s.door = door.New(s, log)
	s.serving.Go(func() { _ = s.http.Serve(s.plain) })  // ends by Shutdown
	s.serving.Go(func() { _ = s.grpc.Serve(s.framed) }) // the same
	go s.run(on)                                        // ends by Release or Shutdown; Failed tells of it
	return s
}

func (s *Server) run(on net.Listener) {
	if err := s.door.Serve(on); !errors.Is(err, door.ErrClosed) {
		s.failed <- err
	}
	close(s.failed)
}

// Addr returns the address that is listened on.
func (s *Server) Addr() net.Addr { return s.address }

// Failed gives an error if the listener dies, and is closed when nothing is listened on
// any more.
func (s *Server) Failed() <-chan error { return s.failed }

// Release stops listening: the socket lives on in another process. Whoever is connected
// is served until Shutdown.
func (s *Server) Release() { s.door.Release() }

// Shutdown stops listening, lets requests in progress finish until ctx ends, and then
// cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.door.Close()
	s.conns.dropSilent()
	stopped := make(chan struct{})
	go func() { // ends by Stop at the latest
		s.grpc.GracefulStop()
		close(stopped)
	}()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // it can only repeat that
	}
	select {
	case <-stopped:
	case <-ctx.Done():
		s.grpc.Stop()
		<-stopped
	}
	s.serving.Wait()
	return err
}

// ServeConn implements door.Server.
func (s *Server) ServeConn(nc net.Conn) {
	c := s.conns.enter(nc, time.Now())
	if c == nil {
		_ = nc.Close()
		return
	}
	s.serving.Go(func() { s.split(c) })
}

// split gives a connection to the server of what it speaks.
func (s *Server) split(nc *conn) {
	switch first := nc.firstBytes(); first {
	case "":
		_ = nc.Close()
	case "PRI": // of "PRI * HTTP/2.0", which no request of HTTP/1.1 begins with
		s.framed.ServeConn(nc)
	default:
		s.plain.ServeConn(nc)
	}
}
