package socket

import (
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// welcome is the first message of juggler.1.
func (s *session) welcome() {
	if !s.dialect.isNew() {
		return
	}
	o := &s.server.options
	w := &welcome{
		connection: s.caller.ID, ping: o.Ping.Milliseconds(),
		limits: limits{
			message: o.ReadLimit, events: int64(o.QueueBytes),
			calls: o.MaxCalls, subscriptions: o.MaxSubscriptions, name: o.MaxName,
		},
	}
	a := s.identified(answer{kind: Welcome, welcome: w})
	if s.identity.isAwaited() {
		w.auth, a.ttl = a.ttl, 0
	}
	s.tell(a)
}

// identified adds the identity of the socket to an answer. Only newSession's caller and the
// reading goroutine call it.
func (s *session) identified(a answer) answer {
	a.user = s.caller.User
	if s.identity != nil && !s.identity.Expires.IsZero() {
		a.ttl = max(1, time.Until(s.identity.Expires).Milliseconds())
	}
	return a
}

// explain tells a client of juggler.1 why its socket ends.
func (s *session) explain(err error) {
	if code, why := farewell(s.dialect, err); code != 0 {
		s.bye(code, why)
	}
}

// overflow ends a socket that has lost events and cannot be told which.
func (s *session) overflow() {
	s.end(endOverflow, closeOverflow, "events were not read in time")
}

// about is an answer of juggler.1 about a subscription that the server has made or ended.
func about(kind Kind, topic broker.Topic) answer {
	if topic.Pattern {
		return answer{kind: kind, pattern: topic.Name}
	}
	return answer{kind: kind, channel: topic.Name}
}

// isTooLong reports whether the frame of a reply is over the limit.
func (s *Server) isTooLong(f *frame) bool {
	most := s.options.WriteLimit
	return most > 0 && f != nil && int64(len(f.bytes)) > most
}
