package relay

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// callSize is what a call takes beside its buffers: itself and its form; see
	// TestCallSize.
	callSize = 1296
	// Connections are sorted by their parts: those below 16 KiB, and one class for
	// each doubling.
	leastPart   = 16 << 10
	partClasses = 16
	// spared is the last class of connections whose calls wait on as long as the
	// budget is not overfull: what is short is held by others.
	spared = 2
	// alike is by how many classes, up to a part eight times as large, connections
	// of two shards count as holding the same: the other shard may take a while.
	alike = 3
)

// hoard is what waits in one shard and can be given up: the connections of callers
// that have waiting calls, or an excess (h2.Conn.Excess), by how much they hold.
//
// Concurrency: guarded by the lock of its shard, but for most and asked.
type hoard struct {
	classes [partClasses + 1]list[callerConn] // by callerConn.class; nothing is in the first
	most    atomic.Int32                      // highest class that is not empty
	asked   atomic.Bool                       // another shard wants room; a task is on its way
}

// count keeps the number of bytes that wait in this process for the call's
// connection: its request, HEADERS included, while it still comes, is queued or
// pauses, and the answer that its caller does not take. A call that has no slot is
// one that can be given up.
//
// It is called where those buffers change, but not where bytes pass through.
func (c *call) count() {
	if c.state != callQueued && c.state != callGathering && c.state != callPausing {
		c.waitsNoMore()
		return
	}
	if !c.place.listed() {
		c.caller.waiting.push(&c.place, c)
	}
	c.holds(callSize + cap(c.form.head) + cap(c.form.path) + cap(c.req) + cap(c.resp))
}

// waitsNoMore takes a call's request, if it had any, out of what waits.
func (c *call) waitsNoMore() {
	c.place.leave()
	c.holds(cap(c.resp))
}

func (c *call) holds(n int) {
	c.caller.held += n - c.counted
	c.counted = n
	c.caller.sort()
}

// part is what the connection holds of the budget, bytes.
func (cc *callerConn) part() int { return cc.held + cc.excess }

// sort puts the connection where it belongs by its part.
func (cc *callerConn) sort() {
	class := uint8(0)
	if cc.waiting.first() != nil || cc.excess > 0 {
		class = 1 + uint8(min(bits.Len(uint(cc.part()/leastPart)), partClasses-1))
	}
	if class == cc.class {
		return
	}
	h := &cc.st.hoard
	cc.byPart.leave()
	cc.class = class
	if class > 0 {
		h.classes[class].push(&cc.byPart, cc)
	}
	most := int32(len(h.classes) - 1)
	for most > 0 && h.classes[most].first() == nil {
		most--
	}
	if h.most.Load() != most {
		h.most.Store(most)
	}
}

// excess is told what a caller's connection holds beyond what each may (h2.Config).
func excess(conn *h2.Conn, bytes int) {
	cc := conn.Owner.(*callerConn)
	cc.excess = bytes
	cc.sort()
	cc.st.shed(cc, cc.st.Now())
}

// shed gives up what waits until the bounds of the connection and of the process
// are kept again; a running call is never touched (R11). If running calls alone
// fill them, it ends at once.
func (st *stand) shed(cc *callerConn, now time.Duration) {
	for newest := cc.waiting.last(); newest != nil && cc.overdrawn(); newest = cc.waiting.last() {
		newest.fail(endedBuffer, now)
	}
	if st.relay.budget.Exceeded() {
		st.makeRoom(now)
	}
}

// makeRoom gives up what waits while the budget is exceeded: the connection with the
// largest part goes first. If another shard has that, it is asked; this one goes on
// meanwhile with what holds about as much.
func (st *stand) makeRoom(now time.Duration) {
	for st.relay.budget.Exceeded() {
		if other := st.fuller(); other != nil {
			if other.hoard.asked.CompareAndSwap(false, true) {
				other.Post((*roomMaker)(other))
			}
			if st.hoard.most.Load() < other.hoard.most.Load()-alike {
				return
			}
		}
		if !st.giveUp(now) {
			return
		}
	}
}

// roomMaker is a stand that another one has asked for room.
type roomMaker stand

// Run implements shard.Task.
func (m *roomMaker) Run(now time.Duration) {
	m.hoard.asked.Store(false)
	(*stand)(m).makeRoom(now)
}

// fuller returns a stand with a larger connection to give up than this one has, nil
// if there is none.
func (st *stand) fuller() (found *stand) {
	most := st.hoard.most.Load()
	for _, other := range st.relay.stands {
		if its := other.hoard.most.Load(); its > most {
			found, most = other, its
		}
	}
	return found
}

// giveUp gives up something of the connection with the largest part: its newest
// waiting call, or if it has none itself. It reports whether there was anything.
func (st *stand) giveUp(now time.Duration) bool {
	class := st.hoard.most.Load()
	if class == 0 || class <= spared && !st.relay.budget.Overfull() {
		return false
	}
	cc := st.hoard.classes[class].last()
	if newest := cc.waiting.last(); newest != nil {
		newest.fail(endedBuffer, now)
		return true
	}
	if !cc.link.GiveUp() { // it has ended, or has come to its end meanwhile
		cc.excess = 0
		cc.sort()
	}
	return true
}

// overdrawn reports whether the caller holds up so many bytes that it gets no
// new calls: it must take its answers first.
func (cc *callerConn) overdrawn() bool { return cc.part() > cc.st.relay.settings().Limits.Buffer }

// crowdedOut reports whether a caller gets no new calls for want of room: it holds
// a part of a budget that is exceeded, or nobody gets any.
func (cc *callerConn) crowdedOut(now time.Duration) bool {
	b := cc.st.relay.budget
	if !b.Exceeded() {
		return cc.overdrawn()
	}
	cc.st.makeRoom(now)
	return cc.overdrawn() || b.Exceeded() && (cc.part() > leastPart || b.Overfull())
}
