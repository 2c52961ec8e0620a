package socket

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostSources is how many are told apart; further ones are one.
	mostSources = 10_000
	// socketsPart is how many times as many sockets as it leaves to others one source has.
	socketsPart = 7
)

// source is whom several sockets may come from: a user, or an address (a /64 of IPv6).
// What bounds all sockets bounds a source to a part of it, so that one who takes what he
// can leaves room for others.
type source struct {
	key     string        // "": not known, as of Unix sockets; nothing bounds it but what bounds all
	held    atomic.Int64  // bytes
	compare atomic.Int64  // work that its patterns are
	turn    chan struct{} // has an element while one of its sockets waits for a turn, or has it

	// Guarded by sources.mu.
	users   int // handshakes under way
	sockets int
	last    time.Time // when it was asked for

	handshakes debt // guarded by that rate
	matching   debt // so is this
}

// sources are those that there are, or were a moment ago.
//
// Concurrency: every method may be called from anywhere. mu is a leaf.
type sources struct {
	mu  sync.Mutex
	all map[string]*source
}

// of returns the source with a key, which leave gives back.
func (s *sources) of(key string, now time.Time) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.all[key]
	if from == nil {
		if len(s.all) >= mostSources {
			key = "others"
			from = s.all[key]
		}
		if from == nil {
			from = &source{key: key, turn: make(chan struct{}, 1)}
			s.all[key] = from
		}
	}
	from.users++
	from.last = now
	return from
}

func (s *sources) leave(from *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from.users--
}

// admits counts a socket in, if there is room: most is how many there may be in all.
func (s *sources) admits(from *source, open, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open > most || from.key != "" && from.sockets+1 > socketsPart*(most-open+1) {
		return false
	}
	from.sockets++
	return true
}

func (s *sources) gone(from *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from.sockets--
}

// debtOf is a debt of the source; nil if nobody knows whose it is.
func (f *source) debtOf(d *debt) *debt {
	if f.key == "" {
		return nil
	}
	return d
}

// forget drops those that nobody has used for a while.
func (s *sources) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, from := range s.all {
		if from.users == 0 && from.sockets == 0 && now.Sub(from.last) > time.Minute {
			delete(s.all, key)
		}
	}
}

// addressKey is the key of the source at an address.
func addressKey(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	a = a.Unmap().WithZone("")
	const network = 64                         // what one host mostly has
	p, _ := a.Prefix(min(a.BitLen(), network)) // of an address that is one
	return p.String()
}

// userKey is the key of the source that a user is.
func userKey(user string) string { return "user " + user }
