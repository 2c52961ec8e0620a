package web

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/door"
)

// answerTime is how long a caller may take for an answer, which is a few lines.
const answerTime = 10 * time.Second

// Limits bound what a connection of HTTP/1 may take.
type Limits struct {
	Head      time.Duration // until a request's head has arrived
	HeadBytes int           // of it, and 4 KiB more
	// Alone says that nothing but the routes is served here, over HTTP/2 neither.
	Alone bool

	// Proxies are peers that say by x-forwarded-for whose a request is.
	Proxies door.Proxies
}

// Doors finds who serves a request by what it says beside its path; nil: nobody.
type Doors func(*http.Request) http.Handler

// HTTP1 serves connections that speak HTTP/1: each for one request, or for any number that
// doors serve, one after the other.
//
// Life: NewHTTP1, ServeConn for each connection, Close. Connections outlive it: their
// owner closes them.
// Concurrency: all methods may be called from anywhere.
type HTTP1 struct {
	log    *slog.Logger
	routes map[string]http.Handler
	doors  Doors
	work   turnstile

	mu     sync.RWMutex
	annex  *door.Annex // of the newest server
	closed bool
	done   sync.WaitGroup // servers that accept
}

// NewHTTP1 returns a server that has the handlers of routes, by path, answer what is
// asked for there: they may take the connection over (http.Hijacker). All else is for doors,
// if there are any. The log is told at level debug of what net/http has to say: its callers
// can make it say anything.
func NewHTTP1(l Limits, routes map[string]http.Handler, doors Doors, log *slog.Logger) *HTTP1 {
	s := &HTTP1{log: log, routes: routes, doors: doors, work: newTurnstile()}
	s.Configure(l)
	return s
}

// Configure has other limits hold for connections that come.
func (s *HTTP1) Configure(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.annex != nil {
		_ = s.annex.Close() // it has no error
	}
	s.annex = door.NewAnnex()
	server, annex := s.server(l), s.annex
	s.done.Go(func() { _ = server.Serve(annex) }) // ends when the annex closes
}

// server is that of net/http for one configuration. Requests that were sent one behind the
// other have the goroutine of their connection run as long as they last, ahead of the
// shards': so a connection is closed behind all that is no call, and calls go through the
// turnstile.
func (s *HTTP1) server(l Limits) *http.Server {
	server := &http.Server{
		Handler:                      behind(l.Proxies, s.handler(l.Alone)),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            l.Head,
		ReadTimeout:                  l.Head + answerTime, // else a body that never comes is waited for
		WriteTimeout:                 answerTime,
		IdleTimeout:                  silence,
		MaxHeaderBytes:               l.HeadBytes,
		ConnState:                    tell,
		ConnContext:                  func(ctx context.Context, nc net.Conn) context.Context { return context.WithValue(ctx, connKey{}, nc) },
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return server
}

// ServeConn serves a connection, and returns as soon as that has begun. Configure waits for
// that: no connection meets a server that has stopped.
func (s *HTTP1) ServeConn(nc net.Conn) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.annex.ServeConn(nc)
}

// unclaimed returns a request without the fields by which doors tell who calls, and
// without trailers, as calls of gRPC are passed on.
func unclaimed(r *http.Request) *http.Request {
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool { return door.IsClaim(name) })
	r = r.WithContext(r.Context()) // net/http adds those that come behind the body to the one that it has made
	r.Trailer = nil
	return r
}

// behind has a handler find the caller in place of a proxy as the peer of a request.
func behind(proxies door.Proxies, h http.Handler) http.Handler {
	if len(proxies) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && proxies.Has(peer) {
			if caller, _, ok := proxies.Caller(strings.Join(r.Header["X-Forwarded-For"], ",")); ok {
				r.RemoteAddr = remoteAddr(caller)
			}
		}
		h.ServeHTTP(w, r)
	})
}

// Close takes no further connection.
func (s *HTTP1) Close() {
	s.mu.Lock()
	s.closed = true
	_ = s.annex.Close() // it has no error
	s.mu.Unlock()
	s.done.Wait()
}

// visitor is a connection whose owner wants to know what comes of it.
type visitor interface {
	Busy()     // a request was read
	Idle()     // it was answered, and another one may come
	Refused()  // it was wrong here
	Hijacked() // a handler has it now
}

// tell is told the states of connections (http.Server.ConnState).
func tell(nc net.Conn, state http.ConnState) {
	v, ok := nc.(visitor)
	switch {
	case !ok:
	case state == http.StateActive:
		v.Busy()
	case state == http.StateIdle:
		v.Idle()
	case state == http.StateHijacked:
		v.Hijacked()
	}
}

// connKey finds the connection in the context of its requests.
type connKey struct{}

// Conn returns what a request came on: the Stream of HTTP/2, or of HTTP/1 the connection that
// ServeConn was given.
func Conn(r *http.Request) any { return r.Context().Value(connKey{}) }

// handler is that of all requests.
func (s *HTTP1) handler(alone bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = unclaimed(r)
		handler := s.routes[r.URL.Path]
		if handler == nil && !alone && s.doors != nil {
			if door := s.doors(r); door != nil {
				s.serveCall(w, r, door)
				return
			}
		}
		w.Header().Set("Connection", "close")
		switch {
		case handler != nil:
			handler.ServeHTTP(w, r)
		case !alone && IsPage(r.Method, r.URL.Path):
			ServePage(w, r)
		default:
			refuse(w, r, alone)
		}
	})
}

// refuse says what is served here to those who ask for something else.
func refuse(w http.ResponseWriter, r *http.Request, alone bool) {
	if v, ok := r.Context().Value(connKey{}).(visitor); ok {
		v.Refused()
	}
	status, text := http.StatusHTTPVersionNotSupported, wrongProtocol
	if alone || strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		status, text = http.StatusNotFound, noSocket
	}
	w.Header().Set("Content-Type", textPlain)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a caller that has gone needs no answer
}

// What those are told who ask for something else.
const (
	wrongProtocol = "cabrank: this port speaks HTTP/2 (without TLS by prior knowledge), as gRPC does\n"
	noSocket      = "cabrank: no sockets are served at this path, see the key socket.path\n"
)
