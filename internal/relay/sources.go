package relay

import (
	"math/bits"
	"net/netip"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// othersPart is which part of what there is besides others' connections no single
	// source gets: an eighth is always left, and of that an eighth by the next one.
	othersPart = 8
	// ownPatience is how long a connection has had no call at least when a newer one
	// of its own source takes its place.
	ownPatience = time.Second
	// sourceClasses is one for each doubling of a source's connections.
	sourceClasses = 32
)

// source is one address that callers' connections come from, or a /64 of IPv6.
//
// Concurrency: idle[i] is guarded by the lock of the shard i, the rest by sources.mu.
type source struct {
	key   netip.Prefix  // invalid: not known, as of Unix sockets
	count int           // connections
	class int           // by count
	place place[source] // in sources.classes
	idle  []list[seat]  // connections without a call, by shard
}

// seat is where a connection stands among those of its source that have no call.
type seat struct {
	of    occupant
	place place[seat] // in source.idle
}

// occupant is a connection that has no call.
type occupant interface {
	restsSince() time.Duration
	dismiss() // ends it, to make room for another
}

// rests notes that a connection of a shard has no call.
func (s *source) rests(seat *seat, of occupant, shard int) {
	if s != nil && !seat.place.listed() {
		seat.of = of
		s.idle[shard].push(&seat.place, seat)
	}
}

// leave notes that it has one, or is gone.
func (s *seat) leave() { s.place.leave() }

// sources are those that have connections.
//
// Concurrency: mu is a leaf.
type sources struct {
	mu      sync.Mutex
	shards  int
	all     map[netip.Prefix]*source
	classes [sourceClasses]list[source]
}

func (s *sources) init(shards int) {
	s.shards, s.all = shards, make(map[netip.Prefix]*source)
}

// sourceKey returns what connections from an address are counted by.
func sourceKey(address string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	const network = 64 // what one host mostly has
	p, _ := a.Prefix(min(a.BitLen(), network))
	return p
}

// arrive counts a connection in, and returns how many its source has.
func (s *sources) arrive(address string) (from *source, count int) {
	key := sourceKey(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	from = s.all[key]
	if from == nil {
		from = &source{key: key, idle: make([]list[seat], s.shards)}
		s.all[key] = from
	}
	s.recount(from, 1)
	return from, from.count
}

// depart counts a connection out.
func (s *sources) depart(from *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recount(from, -1)
	if from.count == 0 {
		delete(s.all, from.key)
	}
}

func (s *sources) recount(from *source, n int) {
	from.count += n
	if class := bits.Len(uint(from.count)); class != from.class {
		from.place.leave()
		if from.class = class; class > 0 {
			s.classes[class].push(&from.place, from)
		}
	}
}

// largest returns a source with as many connections as any other, or at least half
// as many.
func (s *sources) largest() *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	for class := len(s.classes) - 1; class > 0; class-- {
		if from := s.classes[class].first(); from != nil {
			return from
		}
	}
	return nil
}

// enters counts a caller's connection in, or returns nil if there is no room, or scarce,
// no descriptor for it. Then the source with the most connections gives up the one that
// has been without a call for longest. One source has at most seven times as many as it
// leaves to others.
func (r *Relay) enters(address string, scarce bool) *source {
	from, count := r.sources.arrive(address)
	left := r.mostConnections() - r.connections.Add(1)
	greedy := from.key.IsValid() && int64(count) > (othersPart-1)*(left+1)
	if left >= 0 && !greedy && !scarce || r.makesWay(from) {
		return from
	}
	r.connections.Add(-1)
	r.sources.depart(from)
	return nil
}

// leaves counts a caller's connection out.
func (r *Relay) leaves(from *source) {
	r.connections.Add(-1)
	if from != nil {
		r.sources.depart(from)
	}
}

// makesWay ends an idle connection for a new one, and reports whether there was any: of
// the largest source, or else of the new one's own, which it does not take at once.
func (r *Relay) makesWay(from *source) bool {
	if largest := r.sources.largest(); largest != from && r.dismissIdle(largest, r.now()) {
		return true
	}
	return r.dismissIdle(from, r.now()-ownPatience)
}

// dismissIdle ends the connection of a source that has been idle for longest, if that
// is since before the given time.
func (r *Relay) dismissIdle(from *source, before time.Duration) bool {
	var where *stand
	for i, st := range r.stands {
		st.do(func() {
			if s := from.idle[i].first(); s != nil && s.of.restsSince() <= before {
				where, before = st, s.of.restsSince()
			}
		})
	}
	if where == nil {
		return false
	}
	dismissed := false
	where.do(func() {
		if s := from.idle[where.number].first(); s != nil { // it may have begun a call meanwhile
			dismissed = true
			s.of.dismiss()
		}
	})
	return dismissed
}

// restsSince implements occupant.
func (cc *callerConn) restsSince() time.Duration { return cc.life.quiet }

// dismiss ends an idle connection at once, to make room: its caller learns by GOAWAY
// that no call was under way.
func (cc *callerConn) dismiss() {
	cc.st.partings[parting{ofCaller, partingRoom}]++
	if conn := cc.link.Conn; conn.Greeted() {
		conn.GoAway(conn.LastPeerStream(), h2.NoError, "")
	}
	cc.link.CloseFlushed(errDismissed)
}

// rests notes that the connection has no call, if that is so, but for such as are answered
// at the door.
func (cc *callerConn) rests() {
	if cc.link.Conn.Streams() == cc.atDoor && !cc.link.Closed() {
		cc.source.rests(&cc.resting, cc, cc.st.number)
	}
}

// stirs notes that it has one, or is gone.
func (cc *callerConn) stirs() { cc.resting.leave() }
