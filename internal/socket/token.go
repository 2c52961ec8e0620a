package socket

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/auth"
)

// tokenName is the parameter of the query for a token.
const tokenName = "token"

// errTokenChannels refuses a token with too many channels.
var errTokenChannels = errors.New("the token has more channels, or longer names, than a socket may have")

// tokenOf finds the token of a handshake: in the header, the query, or a cookie of a
// listed origin; "" without a token.
func (s *Server) tokenOf(r *http.Request) string {
	if token := auth.Bearer(r.Header.Get("Authorization")); token != "" {
		return token
	}
	if token := r.URL.Query().Get(tokenName); token != "" {
		return token
	}
	origin := r.Header.Get("Origin")
	if s.options.AuthCookie == "" || origin == "" || !slices.Contains(*s.origins.Load(), origin) {
		return ""
	}
	cookie, err := r.Cookie(s.options.AuthCookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// identify returns the identity of a handshake; nil without Auth, when tokens are not
// needed. A request that is not a handshake is refused elsewhere.
func (s *Server) identify(r *http.Request) (*identity, error) {
	switch {
	case s.options.Auth == nil:
		return nil, nil
	case !websocket.IsWebSocketUpgrade(r):
		return &identity{Identity: &auth.Identity{}}, nil
	}
	token := s.tokenOf(r)
	id, err := s.verify(token)
	if err != nil && token == "" && s.mayComeLater(r) {
		return &identity{&auth.Identity{Expires: time.Now().Add(firstTokenTime)}, true}, nil
	}
	return id, err
}

// mayComeLater reports whether the protocol that will be agreed has a message for a token.
func (s *Server) mayComeLater(r *http.Request) bool {
	offered := websocket.Subprotocols(r)
	for _, protocol := range s.upgrader.Subprotocols { // in the order of the upgrader
		if slices.Contains(offered, protocol) {
			return protocol != Protocol
		}
	}
	return false
}

// verify returns the identity in a token, if a socket can have it.
func (s *Server) verify(token string) (*identity, error) {
	shown, err := s.options.Auth.Verify(token)
	if err != nil {
		return nil, err
	}
	if len(shown.Channels) > s.options.MaxSubscriptions {
		return nil, errTokenChannels
	}
	for _, channel := range shown.Channels {
		if len(channel) > s.options.MaxName {
			return nil, errTokenChannels
		}
	}
	return &identity{Identity: shown}, nil
}

// refuseToken answers a handshake without a valid token.
func (s *Server) refuseToken(w http.ResponseWriter, why error) {
	s.stats.refused[refusedToken].Add(1)
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "no socket: "+why.Error(), http.StatusUnauthorized)
}
