package socket

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
)

// firstTokenTime is how long a socket may take to show its token by a message.
const firstTokenTime = 5 * time.Second

// errUser refuses a token.
var errUser = errors.New("the token is of another user")

// errFirst refuses requests before the token.
var errFirst error = &broker.CodeError{Code: 401, Text: "a token is needed first"}

// errToken refuses a token that came by a message.
func errToken(why error) error { return &broker.CodeError{Code: 401, Text: why.Error()} }

// endOfClock is the end of nanoseconds since 1970, in the year 2262: tokens without an end
// expire later.
const endOfClock = math.MaxInt64

// becomes gives the socket an identity. Only newSession and the reading goroutine call it.
func (s *session) becomes(id *identity) {
	s.identity = id
	s.mustShowToken.Store(id.isAwaited())
	s.server.directory.rename(s, s.caller.ID, s.caller.User, id.User)
	s.caller = &broker.Caller{ID: s.caller.ID, Address: s.caller.Address, Source: s.caller.Source, User: id.User, Certificate: s.caller.Certificate}
	s.expires.Store(0)
	if at := id.Expires; !at.IsZero() && at.Before(time.Unix(0, endOfClock)) {
		s.expires.Store(at.UnixNano())
	}
}

// authenticate takes a token from a message: the first token of a socket, or a new one
// before the last expires. Only the reading goroutine calls it.
//
// Subscriptions that are not allowed any more end, also to channels of the last token that
// are not in this one.
//
// Errors: CodeError 401, also for a token of another user; the identity stays as it is.
func (s *session) authenticate(token string) error {
	if s.server.options.Auth == nil {
		return errNoTokens
	}
	s.turns.rest() // keys may have to be fetched
	id, err := s.server.verify(token)
	s.turns.work()
	if err != nil {
		return errToken(err)
	}
	if known := s.caller.User; known != "" && known != id.User {
		return errToken(errUser)
	}
	s.forgetFailed()
	for topic := range s.topics {
		if !id.MaySubscribe(topic) && !id.has(topic) {
			s.part(topic)
			s.server.hub.unsubscribe(topic, s)
			s.tell(about(Unsub, topic))
		}
	}
	s.becomes(id)
	s.openChannels()
	return nil
}

// openChannels subscribes to the channels of the token, and waits until they are. If the
// broker cannot, the socket ends with 1013: its client would miss events and not know.
func (s *session) openChannels() {
	if !s.identity.hasChannels() {
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
		s.tell(about(Sub, topic))
	}
	s.awaitJoined()
}

// expire ends a socket whose token has expired.
func (s *session) expire() {
	s.end(endExpired, websocket.ClosePolicyViolation, "no token that counts any more")
}

// isAwaited reports whether the token has to come by a message.
func (id *identity) isAwaited() bool { return id != nil && id.awaited }

// awaitToken ends a socket that does not show its token in time.
func (s *session) awaitToken() {
	if !s.identity.isAwaited() {
		return
	}
	s.tokenTimer = time.AfterFunc(firstTokenTime, func() {
		if expires := s.expires.Load(); expires != 0 && expires <= time.Now().UnixNano() {
			s.expire()
		}
	})
}

// end ends the socket with a close frame, for a reason.
func (s *session) end(reason endReason, code int, why string) {
	s.setReason(reason)
	s.bye(code, why)
}

func (id *identity) hasChannels() bool { return id != nil && len(id.Channels) > 0 }

// has reports whether a topic is one of the channels of the token.
func (id *identity) has(topic broker.Topic) bool {
	return !topic.Pattern && slices.Contains(id.Channels, topic.Name)
}
