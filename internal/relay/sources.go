package relay

import (
	"math/bits"
	"net/netip"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// othersPart: no single source gets the last eighth of what others leave, so that an
	// eighth is left, and an eighth of that after a second such source.
	othersPart = 8
	// ownIdleTime is how long a connection must be idle before a newer one of its own
	// source takes its place.
	ownIdleTime = time.Second
	// sourceClasses is the number of classes, one for each doubling of a source's connections.
	sourceClasses = 32
)

// source is one address that callers' connections come from, or a /64 of IPv6.
//
// Concurrency: idle[i] is guarded by the lock of the shard i, the rest by sources.mu.
type source struct {
	key   netip.Prefix      // invalid: unknown, as for Unix sockets
	count int               // connections
	class int               // by count
	node  node[source]      // in sources.classes
	idle  []list[idleEntry] // connections without a call, by shard
}

// idleEntry is the place of a connection among the idle ones of its source.
type idleEntry struct {
	conn idleConn
	node node[idleEntry] // in source.idle
}

// idleConn is a connection that has no call.
type idleConn interface {
	idleSince() time.Duration
	evict() // ends it, to make room for another
}

// markIdle notes that a connection of a shard has no call.
func (s *source) markIdle(entry *idleEntry, of idleConn, shard int) {
	if s != nil && !entry.node.listed() {
		entry.conn = of
		s.idle[shard].push(&entry.node, entry)
	}
}

// leave notes that the connection has a call, or is gone.
func (s *idleEntry) leave() { s.node.leave() }

// sources has the sources with connections.
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

// add counts a connection in, and returns how many its source has.
func (s *sources) add(address string) (from *source, count int) {
	key := sourceKey(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	from = s.all[key]
	if from == nil {
		from = &source{key: key, idle: make([]list[idleEntry], s.shards)}
		s.all[key] = from
	}
	s.recount(from, 1)
	return from, from.count
}

// remove counts a connection out.
func (s *sources) remove(from *source) {
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
		from.node.leave()
		if from.class = class; class > 0 {
			s.classes[class].push(&from.node, from)
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

// countIn counts a caller's connection in. If there is no room, or scarce says that few
// descriptors are left, it evicts an idle connection, or returns nil if none is idle. One
// source has at most seven times as many connections as it leaves to others.
func (r *Relay) countIn(address string, scarce bool) *source {
	from, count := r.sources.add(address)
	left := r.mostConnections() - r.connections.Add(1)
	greedy := from.key.IsValid() && int64(count) > (othersPart-1)*(left+1)
	if left >= 0 && !greedy && !scarce || r.evictIdle(from) {
		r.accepted.Add(1)
		return from
	}
	r.connections.Add(-1)
	r.sources.remove(from)
	return nil
}

// countOut counts a caller's connection out.
func (r *Relay) countOut(from *source) {
	r.connections.Add(-1)
	if from != nil {
		r.sources.remove(from)
	}
}

// evictIdle ends an idle connection for a new one, and reports whether it did: the oldest of
// the largest source, or else one of the new connection's own source that has been idle for
// ownIdleTime.
func (r *Relay) evictIdle(from *source) bool {
	if largest := r.sources.largest(); largest != from && r.evictOldest(largest, r.now()) {
		return true
	}
	return r.evictOldest(from, r.now()-ownIdleTime)
}

// evictOldest ends the longest idle connection of a source, if it has been idle since the
// given time, and reports whether it did.
func (r *Relay) evictOldest(from *source, before time.Duration) bool {
	var where *shardState
	for i, st := range r.shards {
		st.do(func() {
			if s := from.idle[i].first(); s != nil && s.conn.idleSince() <= before {
				where, before = st, s.conn.idleSince()
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
			s.conn.evict()
		}
	})
	return dismissed
}

// idleSince implements idleConn.
func (cc *callerConn) idleSince() time.Duration { return cc.lifetime.quiet }

// evict ends an idle connection at once to make room. GOAWAY tells its caller that no call
// was under way.
func (cc *callerConn) evict() {
	cc.st.disconnects[disconnect{ofCaller, reasonMakeRoom}]++
	if conn := cc.link.Conn; conn.Greeted() {
		conn.GoAway(conn.LastPeerStream(), h2.NoError, "")
	}
	cc.link.CloseFlushed(errEvicted)
}

// markIdle notes that the connection is idle, if all its calls are ones that Cabrank
// answers.
func (cc *callerConn) markIdle() {
	if cc.link.Conn.Streams() == cc.answeredHere && !cc.link.Closed() {
		cc.source.markIdle(&cc.idle, cc, cc.st.number)
	}
}

// markBusy notes that the connection has a call, or is gone.
func (cc *callerConn) markBusy() { cc.idle.leave() }
