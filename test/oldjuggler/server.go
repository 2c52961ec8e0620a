package oldjuggler

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/gorilla/websocket"
)

// Options of a Server. Zero is no limit.
type Options struct {
	// Dial opens a connection to Redis.
	Dial func() (redis.Conn, error)
	// Origins are those allowed, compared as they are; none of them: the request's host.
	Origins []string
	// AllowEmptySubprotocol accepts clients with which no subprotocol is agreed.
	AllowEmptySubprotocol bool
	// ReadLimit and WriteLimit are bytes of a message.
	ReadLimit, WriteLimit int64
	// CallCap is the most calls that wait for one URI.
	CallCap int
	// CloseURI ends the socket of whoever calls it. The empty one is a URI, too.
	CloseURI string
}

// Server accepts sockets. It is an http.Handler.
//
// Life: NewServer, requests, Close, which waits for the sockets.
type Server struct {
	options  Options
	pool     *redis.Pool
	scripts  scripts
	upgrader websocket.Upgrader

	mu     sync.Mutex
	closed bool
	conns  map[*conn]bool
	ended  sync.WaitGroup
}

// NewServer returns a server that accepts.
func NewServer(options Options) *Server {
	s := &Server{options: options, pool: newPool(options.Dial), scripts: newScripts(), conns: map[*conn]bool{}}
	s.upgrader.Subprotocols = []string{Protocol}
	if len(options.Origins) > 0 {
		s.upgrader.CheckOrigin = func(r *http.Request) bool {
			return slices.Contains(options.Origins, r.Header.Get("Origin"))
		}
	}
	return s
}

// ServeHTTP makes a socket of a request and serves it until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	if ws.Subprotocol() == "" && !s.options.AllowEmptySubprotocol {
		ws.Close()
		return
	}
	ws.SetReadLimit(s.options.ReadLimit)
	c := &conn{server: s, ws: ws, id: NewUUID(), allowed: allowedTypes(r.Header.Get("Juggler-Allowed-Messages"))}
	if !s.add(c) {
		ws.Close()
		return
	}
	c.serve()
	s.remove(c)
}

func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.ended.Add(1)
	s.conns[c] = true
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.ended.Done()
}

// Close drops all sockets.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.drop()
	}
	s.mu.Unlock()
	s.ended.Wait()
	s.pool.Close()
}

// allowedTypes reads the list of message types that a client will send. Words that
// are none count for nothing; a list with nothing in it allows all.
func allowedTypes(list string) map[int]bool {
	words := map[string]int{"call": Call, "pub": Pub, "sub": Sub, "unsb": Unsub}
	allowed := map[int]bool{}
	for word := range strings.SplitSeq(list, ",") {
		if kind := words[strings.ToLower(strings.TrimSpace(word))]; kind != 0 {
			allowed[kind] = true
		}
	}
	if len(allowed) == 0 {
		return map[int]bool{Call: true, Pub: true, Sub: true, Unsub: true}
	}
	return allowed
}
