package socket

import (
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/door"
)

// SetOrigins sets the origins for new handshakes (Options.Origins).
func (s *Server) SetOrigins(origins []string) { s.origins.Store(&origins) }

// SetMost sets the number of sockets (Options.MaxSockets). Sockets that are open stay.
func (s *Server) SetMost(sockets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mostSockets = sockets
}

// SetBuffer sets the memory budget (Options.BufferTotal). Events beyond it are dropped
// when more come.
func (s *Server) SetBuffer(bytes int64) { s.budget.total.Store(bytes) }

// upgrade makes a WebSocket of a request, or answers it.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	upgrader := s.upgrader
	upgrader.CheckOrigin = s.takesOrigin
	return upgrader.Upgrade(w, r, nil)
}

// takesOrigin reports whether the origin of a request may have sockets. The log tells of a
// refused one.
func (s *Server) takesOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	var ok bool
	if origins := *s.origins.Load(); len(origins) > 0 {
		ok = slices.Contains(origins, origin)
	} else {
		ok = origin == "" || door.IsOwnOrigin(origin, r.Host)
	}
	if !ok {
		s.tellOrigin(origin, r.Host)
	}
	return ok
}

const (
	// originPause is the least time between two lines of the log about origins, which show
	// mostShown bytes of a name.
	originPause = 10 * time.Second
	mostShown   = 200
)

func (s *Server) tellOrigin(origin, host string) {
	n := s.originsUntold.Add(1)
	now, last := time.Now().UnixNano(), s.originTold.Load()
	if last != 0 && now-last < int64(originPause) || !s.originTold.CompareAndSwap(last, now) {
		return
	}
	s.originsUntold.Add(-n)
	s.options.Log.Warn("a socket was refused: its page is of another host, and no origin allows it; a proxy may have changed Host",
		"origin", cut(origin, mostShown), "host", cut(host, mostShown), "refused_since", n)
}
