package relay

import "time"

// maxShedLook bounds how many calls are looked at to find those of one
// connection.
const maxShedLook = 1000

// count keeps the number of bytes that wait in this process for the call's
// connection: its request while it still comes, is queued or pauses, and the answer
// that its caller does not take. A call that holds bytes and no slot is one that can
// be shed.
//
// It is called where those buffers change, but not where bytes pass through.
func (c *call) count() {
	waits := c.state == callQueued || c.state == callGathering || c.state == callPausing
	if !waits || cap(c.req) == 0 {
		c.waitsNoMore()
		return
	}
	if !c.listed {
		c.st.hoard.push(c)
	}
	c.holds(cap(c.req) + cap(c.resp))
}

// waitsNoMore takes a call's request, if it had any, out of what waits.
func (c *call) waitsNoMore() {
	c.st.hoard.remove(c)
	c.holds(cap(c.resp))
}

func (c *call) holds(n int) {
	c.caller.held += n - c.counted
	c.counted = n
}

// shed ends queued calls that hold bytes, the newest first, until the bounds of
// the connection and of the process are kept again; a running call is never
// touched (R11). If running calls alone fill them, it ends at once.
func (st *stand) shed(cc *callerConn, now time.Duration) {
	limit := st.relay.settings().Limits.Buffer
	c := st.hoard.tail
	for look := 0; c != nil && cc.held > limit && look < maxShedLook; look++ {
		older := c.older
		if c.caller == cc {
			c.fail(endedBuffer, now)
		}
		c = older
	}
	for st.hoard.tail != nil && st.relay.budget.Exceeded() {
		st.hoard.tail.fail(endedBuffer, now)
	}
}

// overdrawn reports whether the caller holds up so many bytes that it gets no
// new calls: it must take its answers first.
func (cc *callerConn) overdrawn() bool { return cc.held > cc.st.relay.settings().Limits.Buffer }

// callList is a list of calls, oldest first.
type callList struct{ head, tail *call }

func (l *callList) push(c *call) {
	c.older, c.newer, c.listed = l.tail, nil, true
	if l.tail != nil {
		l.tail.newer = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *callList) remove(c *call) {
	if !c.listed {
		return
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.head = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.tail = c.older
	}
	c.older, c.newer, c.listed = nil, nil, false
}
