package relay

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/list"
)

const (
	// callSize is the memory of a call beside its buffers: the call and its head;
	// see TestCallSize.
	callSize = 1344
	// Connections are in classes by heldBytes: one below 16 KiB, and one for each
	// doubling.
	leastHeld   = 16 << 10
	heldClasses = 16
	// smallClass is the last class of connections that are shed only when the budget is
	// overfull: others hold most of the memory.
	smallClass = 2
	// classTolerance is by how many classes the largest connections of two shards may
	// differ and count as equal, a factor of eight: the other shard may take a while.
	classTolerance = 3
)

// sheddable lists what one shard can shed: callers' connections with waiting calls or an
// excess (h2.Conn.Excess), by how many bytes they hold.
//
// Concurrency: guarded by the lock of its shard, but for most and asked.
type sheddable struct {
	classes [heldClasses + 1]list.List[callerConn] // by callerConn.class; the first is always empty
	most    atomic.Int32                           // highest class with a connection
	asked   atomic.Bool                            // another shard has posted a shedTask
}

// count updates the number of waiting bytes of the call's connection: the request, with
// HEADERS, while the call gathers, is queued or pauses, and the unread part of the answer.
// A call without a slot can be shed.
//
// It is called where those buffers change, not where bytes pass through.
func (c *call) count() {
	if !c.state.waits() {
		c.leaveWaiting()
		return
	}
	if !c.node.Listed() {
		c.caller.waiting.Push(&c.node, c)
	}
	c.countHeld(callSize + cap(c.head.Block) + cap(c.head.Path) + cap(c.req) + cap(c.resp))
}

// leaveWaiting takes the call out of its connection's waiting calls.
func (c *call) leaveWaiting() {
	c.node.Leave()
	c.countHeld(cap(c.resp))
}

func (c *call) countHeld(n int) {
	c.caller.held += n - c.counted
	c.counted = n
	c.caller.updateClass()
}

// heldBytes returns how many bytes of the budget the connection holds.
func (cc *callerConn) heldBytes() int { return cc.held + cc.excess }

// updateClass moves the connection to the class of its heldBytes.
func (cc *callerConn) updateClass() {
	class := uint8(0)
	if cc.waiting.First() != nil || cc.excess > 0 {
		class = 1 + uint8(min(bits.Len(uint(cc.heldBytes()/leastHeld)), heldClasses-1))
	}
	if class == cc.class {
		return
	}
	h := &cc.st.sheddable
	cc.byHeld.Leave()
	cc.class = class
	if class > 0 {
		h.classes[class].Push(&cc.byHeld, cc)
	}
	most := int32(len(h.classes) - 1)
	for most > 0 && h.classes[most].First() == nil {
		most--
	}
	if h.most.Load() != most {
		h.most.Store(most)
	}
}

// excess is called with the bytes that a caller's connection holds above its allowance
// (h2.Config).
func excess(conn *h2.Conn, bytes int) {
	cc := conn.Owner.(*callerConn)
	cc.excess = bytes
	cc.updateClass()
	cc.st.shed(cc, cc.st.Now())
}

// shed gives up waiting calls, newest first, until the connection and the process are within
// their bounds. It never touches a running call (R11), and returns if running calls alone
// exceed a bound.
func (st *shardState) shed(cc *callerConn, now time.Duration) {
	for newest := cc.waiting.Last(); newest != nil && cc.overLimit(); newest = cc.waiting.Last() {
		newest.fail(endedBuffer, now)
	}
	if st.relay.budget.Exceeded() {
		st.makeRoom(now)
	}
}

// makeRoom sheds while the budget is exceeded, from the connection that holds most. If that
// is on another shard, that shard gets a task; this one sheds meanwhile if its largest
// connection holds about as much.
func (st *shardState) makeRoom(now time.Duration) {
	for st.relay.budget.Exceeded() {
		if other := st.fullerShard(); other != nil {
			if other.sheddable.asked.CompareAndSwap(false, true) {
				other.Post((*shedTask)(other))
			}
			if st.sheddable.most.Load() < other.sheddable.most.Load()-classTolerance {
				return
			}
		}
		if !st.shedOne(now) {
			return
		}
	}
}

// shedTask makes a shard shed at the request of another one.
type shedTask shardState

// Run implements shard.Task.
func (t *shedTask) Run(now time.Duration) {
	t.sheddable.asked.Store(false)
	(*shardState)(t).makeRoom(now)
}

// fullerShard returns the shard with the largest connection to shed, nil if that is this one.
func (st *shardState) fullerShard() (found *shardState) {
	most := st.sheddable.most.Load()
	for _, other := range st.relay.shards {
		if its := other.sheddable.most.Load(); its > most {
			found, most = other, its
		}
	}
	return found
}

// shedOne gives up the newest waiting call of the connection that holds most, or the
// connection itself if no call waits. It reports false if nothing can be shed.
func (st *shardState) shedOne(now time.Duration) bool {
	class := st.sheddable.most.Load()
	if class == 0 || class <= smallClass && !st.relay.budget.Overfull() {
		return false
	}
	cc := st.sheddable.classes[class].Last()
	if newest := cc.waiting.Last(); newest != nil {
		newest.fail(endedBuffer, now)
		return true
	}
	if !cc.link.GiveUp() { // it has ended meanwhile
		cc.excess = 0
		cc.updateClass()
	}
	return true
}

// overLimit reports whether the connection holds more bytes than it may: its caller gets no
// new calls before it has read its answers.
func (cc *callerConn) overLimit() bool { return cc.heldBytes() > cc.st.relay.settings().Limits.Buffer }

// crowdedOut reports whether a caller gets no new calls for lack of memory: it is over its
// limit, it holds much of an exceeded budget, or the budget is overfull.
func (cc *callerConn) crowdedOut(now time.Duration) bool {
	b := cc.st.relay.budget
	if !b.Exceeded() {
		return cc.overLimit()
	}
	cc.st.makeRoom(now)
	return cc.overLimit() || b.Exceeded() && (cc.heldBytes() > leastHeld || b.Overfull())
}
