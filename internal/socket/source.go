package socket

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostSources is how many sources are told apart; all further ones count as one.
	mostSources = 10_000
	// socketsPart bounds one source: it has at most socketsPart times as many sockets as it
	// leaves to others.
	socketsPart = 7
)

// source is the common origin of sockets: a user, or an address (a /64 of IPv6). Of each
// limit for all sockets a source has only a part, so that a greedy one leaves room for
// others.
type source struct {
	key     string        // "": not known, as of Unix sockets; nothing bounds it but what bounds all
	bytes   atomic.Int64  // bytes
	compare atomic.Int64  // work of its patterns
	turn    chan struct{} // has an element while one of its sockets waits for a turn, or has it

	// Guarded by sources.mu.
	users   int // handshakes under way
	sockets int
	last    time.Time // when it was asked for

	handshakes debt // guarded by Server.rate
	matching   debt // guarded by Server.matching
}

// sources are all sources with sockets, or with a handshake in the last minute.
//
// Concurrency: every method may be called from anywhere. mu is a leaf.
type sources struct {
	mu  sync.Mutex
	all map[string]*source
}

// of returns the source with a key. leave gives it back.
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

// admits counts a new socket, and reports false if the source may have no more. open and
// most are the number and the bound of all sockets.
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

// debtOf returns a debt of the source; nil if the source is not known.
func (f *source) debtOf(d *debt) *debt {
	if f.key == "" {
		return nil
	}
	return d
}

// forget drops sources without sockets and recent handshakes.
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
	const network = 64                         // the usual network of one host
	p, _ := a.Prefix(min(a.BitLen(), network)) // cannot fail for a valid address
	return p.String()
}

// userKey is the key of a user's source.
func userKey(user string) string { return "user " + user }
