package socket

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// tokenName is the parameter of the query that has a token.
const tokenName = "token"

// mostTokenBytes bounds a token.
const mostTokenBytes = 8 << 10

// What is wrong with a token here.
var (
	errTokenLength   = errors.New("the token is longer than 8 KiB")
	errTokenChannels = errors.New("the token has more channels, or longer names, than a socket may have")
)

// tokenOf finds the token of a handshake: in the header, the query, or a cookie of a
// listed origin; "" if there is none.
func (s *Server) tokenOf(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
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

// identify says who asks for a socket. Nobody is asked for a token if there is no Auth;
// a request that is no handshake is left to whoever refuses it.
func (s *Server) identify(r *http.Request) (*Identity, error) {
	switch {
	case s.options.Auth == nil:
		return nil, nil
	case !websocket.IsWebSocketUpgrade(r):
		return &Identity{}, nil
	}
	token := s.tokenOf(r)
	identity, err := s.verify(token)
	if err != nil && token == "" && s.mayComeLater(r) {
		return &Identity{awaited: true, Expires: time.Now().Add(firstTokenTime)}, nil
	}
	return identity, err
}

// mayComeLater reports whether the protocol that will be agreed has a message for a token.
func (s *Server) mayComeLater(r *http.Request) bool {
	offered := websocket.Subprotocols(r)
	for _, protocol := range s.upgrader.Subprotocols { // as the upgrader goes through them
		if slices.Contains(offered, protocol) {
			return protocol != Protocol
		}
	}
	return false
}

// verify returns what a token says, if a socket can have it.
func (s *Server) verify(token string) (*Identity, error) {
	if len(token) > mostTokenBytes {
		return nil, errTokenLength
	}
	identity, err := s.options.Auth.Verify(token)
	if err != nil {
		return nil, err
	}
	if len(identity.Channels) > s.options.MaxSubscriptions {
		return nil, errTokenChannels
	}
	for _, channel := range identity.Channels {
		if len(channel) > s.options.MaxName {
			return nil, errTokenChannels
		}
	}
	return identity, nil
}

// refuseToken answers a handshake whose token counts for nothing.
func (s *Server) refuseToken(w http.ResponseWriter, why error) {
	s.stats.refused[refusedToken].Add(1)
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "no socket: "+why.Error(), http.StatusUnauthorized)
}
