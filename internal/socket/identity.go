package socket

import (
	"slices"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
)

// errToken refuses a token that came by a message.
func errToken(why error) error { return &broker.CodeError{Code: 401, Text: why.Error()} }

// becomes makes the socket one of this identity. Only run calls it, or who makes s.
func (s *session) becomes(identity *Identity) {
	s.identity = identity
	s.caller = &broker.Caller{ID: s.caller.ID, Address: s.caller.Address, User: identity.User}
	if identity.Expires.IsZero() {
		s.expires.Store(0)
	} else {
		s.expires.Store(identity.Expires.UnixNano())
	}
}

// authenticate takes a token of a message: the first of a socket that had none, or one
// more, before the last expires. Only run calls it.
//
// A token of another user, and one that takes away what is subscribed, ends the socket
// with 1008: whoever comes back with it is told what it may.
//
// Errors: CodeError 401; the socket stays what it is.
func (s *session) authenticate(token string) error {
	if s.server.options.Auth == nil {
		return nil // nobody asks
	}
	identity, err := s.server.verify(token)
	if err != nil {
		return errToken(err)
	}
	if known := s.caller.User; known != "" && known != identity.User {
		s.end(endRights, websocket.ClosePolicyViolation, "a token of another user")
		return nil
	}
	s.forgetFailed()
	for topic := range s.topics {
		if !identity.maySubscribe(topic) && !identity.has(topic) {
			s.end(endRights, websocket.ClosePolicyViolation, "the token takes a subscription away")
			return nil
		}
	}
	s.becomes(identity)
	s.openChannels()
	return nil
}

// openChannels subscribes to the channels of the token, and waits until they are. If the
// broker cannot, the socket ends with 1013: its client would miss events and not know.
func (s *session) openChannels() {
	if s.identity == nil || len(s.identity.Channels) == 0 {
		return
	}
	for _, channel := range s.identity.Channels {
		topic := broker.Topic{Name: channel}
		if _, ok := s.topics[topic]; ok {
			continue
		}
		s.join(topic, func(err error) {
			if err != nil {
				s.end(endBroker, websocket.CloseTryAgainLater, "no subscription now")
			}
		})
	}
	s.awaitJoined()
}

// expire ends a socket whose token has.
func (s *session) expire() {
	s.end(endExpired, websocket.ClosePolicyViolation, "the token has expired")
}

// end says goodbye for a reason.
func (s *session) end(reason endReason, code int, why string) {
	s.setReason(reason)
	s.bye(code, why)
}

// has reports whether a topic is one of the channels of the token.
func (id *Identity) has(topic broker.Topic) bool {
	return !topic.Pattern && slices.Contains(id.Channels, topic.Name)
}
