package socket

import (
	"net/http"
	"slices"

	"github.com/gorilla/websocket"
)

// SetOrigins has other origins hold for handshakes that come (Options.Origins).
func (s *Server) SetOrigins(origins []string) { s.origins.Store(&origins) }

// SetMost has another bound hold (Options.MaxSockets). Sockets that are open stay.
func (s *Server) SetMost(sockets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mostSockets = sockets
}

// SetBuffer has another bound hold (Options.BufferTotal): what waits beyond it is dropped
// as more comes.
func (s *Server) SetBuffer(bytes int64) { s.budget.total.Store(bytes) }

// upgrade makes a WebSocket of a request, or answers it.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	upgrader := s.upgrader
	if origins := *s.origins.Load(); len(origins) > 0 {
		upgrader.CheckOrigin = func(r *http.Request) bool { return slices.Contains(origins, r.Header.Get("Origin")) }
	}
	return upgrader.Upgrade(w, r, nil)
}
