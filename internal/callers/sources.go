package callers

import (
	"math/bits"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/list"
)

const (
	// othersPart: no single source gets the last eighth of what others leave, so that an
	// eighth is left, and an eighth of that after a second such source.
	othersPart = 8
	// OwnIdleTime is how long a connection must be idle before a newer one of its own
	// source takes its place.
	OwnIdleTime = time.Second
	// sourceClasses is the number of classes, one for each doubling of a source's connections.
	sourceClasses = 32
)

// Source is one address that callers' connections come from, or a /64 of IPv6.
//
// Concurrency: idle[i] is guarded by the lock of the shard i, the rest by Sources.mu.
type Source struct {
	key   netip.Prefix           // invalid: unknown, as for Unix sockets
	count int                    // connections
	class int                    // by count
	node  list.Node[Source]      // in Sources.classes
	idle  []list.List[IdlePlace] // connections without a call, by shard
}

// IdlePlace is the place of a connection among the idle ones of its source.
type IdlePlace struct {
	conn Idler
	node list.Node[IdlePlace] // in Source.idle
}

// Idler is a connection that has no call.
type Idler interface {
	IdleSince() time.Duration // when its last call ended
	Evict()                   // ends it, to make room for another
}

// MarkIdle notes that a connection of a shard has no call. A connection without a source, in
// this process, is not evicted.
func (s *Source) MarkIdle(place *IdlePlace, of Idler, shard int) {
	if s != nil && !place.node.Listed() {
		place.conn = of
		s.idle[shard].Push(&place.node, place)
	}
}

// Leave notes that the connection has a call, or is gone.
func (p *IdlePlace) Leave() { p.node.Leave() }

// Sources has the sources with connections, and counts these.
//
// Concurrency: may be used from anywhere, but for Enter: it takes the locks of all shards in
// turn. mu is a leaf.
type Sources struct {
	shards   []sync.Locker
	Open     atomic.Int64  // connections, now
	Accepted atomic.Uint64 // connections, ever

	mu      sync.Mutex
	all     map[netip.Prefix]*Source
	classes [sourceClasses]list.List[Source]
}

// Init prepares the sources of shards with these locks.
func (s *Sources) Init(shards []sync.Locker) {
	s.shards, s.all = shards, make(map[netip.Prefix]*Source)
}

// Enter counts a caller's connection in. If there are as many as may be, or scarce says that
// few descriptors are left, it evicts an idle connection, or returns nil if none is idle. One
// source has at most seven times as many connections as it leaves to others.
func (s *Sources) Enter(address string, most int64, scarce bool, now time.Duration) *Source {
	from, count := s.add(address)
	left := most - s.Open.Add(1)
	greedy := from.key.IsValid() && int64(count) > (othersPart-1)*(left+1)
	if left >= 0 && !greedy && !scarce || s.evictFor(from, now) {
		s.Accepted.Add(1)
		return from
	}
	s.Leave(from)
	return nil
}

// Leave counts a caller's connection out.
func (s *Sources) Leave(from *Source) {
	s.Open.Add(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recount(from, -1)
	if from.count == 0 {
		delete(s.all, from.key)
	}
}

// sourceKey returns the key by which connections from an address are counted.
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

// add counts a connection of an address, and returns how many its source has.
func (s *Sources) add(address string) (from *Source, count int) {
	key := sourceKey(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	from = s.all[key]
	if from == nil {
		from = &Source{key: key, idle: make([]list.List[IdlePlace], len(s.shards))}
		s.all[key] = from
	}
	s.recount(from, 1)
	return from, from.count
}

func (s *Sources) recount(from *Source, n int) {
	from.count += n
	if class := bits.Len(uint(from.count)); class != from.class {
		from.node.Leave()
		if from.class = class; class > 0 {
			s.classes[class].Push(&from.node, from)
		}
	}
}

// largest returns a source with as many connections as any other, or at least half as many.
func (s *Sources) largest() *Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	for class := len(s.classes) - 1; class > 0; class-- {
		if from := s.classes[class].First(); from != nil {
			return from
		}
	}
	return nil
}

// evictFor ends an idle connection for a new one, and reports whether it did: the oldest of
// the largest source, or else one of the new connection's own source that has been idle for
// OwnIdleTime.
func (s *Sources) evictFor(from *Source, now time.Duration) bool {
	if largest := s.largest(); largest != from && s.evictOldest(largest, now) {
		return true
	}
	return s.evictOldest(from, now-OwnIdleTime)
}

// evictOldest ends the longest idle connection of a source, if it has been idle since the
// given time, and reports whether it did.
func (s *Sources) evictOldest(from *Source, before time.Duration) bool {
	oldest := -1
	for i := range s.shards {
		s.withIdle(from, i, func(conn Idler) {
			if since := conn.IdleSince(); since <= before {
				oldest, before = i, since
			}
		})
	}
	evicted := false
	if oldest >= 0 { // it may have begun a call meanwhile
		s.withIdle(from, oldest, func(conn Idler) {
			evicted = true
			conn.Evict()
		})
	}
	return evicted
}

// withIdle calls f with the longest idle connection of a source on a shard, if it has one
// there, under the lock of the shard.
func (s *Sources) withIdle(from *Source, shard int, f func(Idler)) {
	s.shards[shard].Lock()
	defer s.shards[shard].Unlock()
	if place := from.idle[shard].First(); place != nil {
		f(place.conn)
	}
}
