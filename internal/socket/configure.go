package socket

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

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
	upgrader.CheckOrigin = s.takesOrigin
	return upgrader.Upgrade(w, r, nil)
}

// takesOrigin reports whether a socket may come from where it does. One that may not is a
// line in the log.
func (s *Server) takesOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	var ok bool
	if origins := *s.origins.Load(); len(origins) > 0 {
		ok = slices.Contains(origins, origin)
	} else {
		ok = origin == "" || isOfHost(origin, r.Host)
	}
	if !ok {
		s.tellOrigin(origin, r.Host)
	}
	return ok
}

// isOfHost reports whether a page is of a host as a request names it, which may have the
// port that both have anyway. Source: RFC 6454, section 5.
func isOfHost(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	return strings.EqualFold(withoutDefault(u.Host), withoutDefault(host))
}

// withoutDefault cuts the ports off that https and http have. Whether a proxy has ended TLS
// is not known here.
func withoutDefault(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

const (
	// originPause is between two lines about origins at least, each of which has mostShown
	// bytes of a name.
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
