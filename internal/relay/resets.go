package relay

import "time"

const (
	// maxResets is how many streams may be reset on one upstream connection at once, and
	// resetPause the time until one more may be: 25 a second. Node ends a connection, with
	// everybody's calls, after 1,000 and 33 a second (R14).
	maxResets  = 800
	resetPause = time.Second / 25
	// maxResting bounds the connections of one endpoint and shard that get no new calls
	// because of their resets. Together they regain 400 resets a second, more than one
	// endpoint is likely to need for long.
	maxResting = 16
	// maxComplaints is how many streams a peer may reset as faulty before new
	// calls go to a fresh connection. Node counts requests that it finds invalid
	// and ends a connection at 1,000, however long it has lived [E].
	maxComplaints = 800
)

// resetBudget counts how many resets may still be sent on a connection. It never allows more
// than a count of each reset at its own time.
type resetBudget struct {
	seen uint64        // resets counted so far
	paid time.Duration // when the last of them is regained
}

// left returns how many more resets may be sent, given the number written on the connection
// so far. It can be negative.
func (b *resetBudget) left(written uint64, now time.Duration) int {
	if written != b.seen {
		b.paid = max(b.paid, now) + time.Duration(written-b.seen)*resetPause
		b.seen = written
	}
	if b.paid <= now {
		return maxResets
	}
	return maxResets - int((b.paid-now+resetPause-1)/resetPause)
}

// takes reports whether a new call may be sent on the connection. All of its open streams may
// be reset, so another is opened only while a reset would be left for each (R14).
func (uc *upstreamConn) takes(now time.Duration) bool {
	conn := uc.link.Conn
	if !conn.CanOpen() {
		// A connection without room while it is empty will never have any.
		if conn.Retired() || conn.Streams() == 0 {
			uc.retire()
		}
		return false
	}
	if !uc.fewComplaints() {
		return false
	}
	left := uc.resets.left(conn.Resets(), now)
	if conn.Streams() < left {
		return true
	}
	if left < maxResets/2 { // otherwise it is full, but not worn out
		uc.resting = true
		uc.streamEnded()
	}
	return false
}

// fewComplaints reports whether the peer could find each open stream faulty, and one
// more, without having found maxComplaints so. They are never won back, so a
// connection for which that is false ends with its streams, unless it is merely
// full.
func (uc *upstreamConn) fewComplaints() bool {
	if uc.complaints+uc.link.Conn.Streams() < maxComplaints {
		return true
	}
	if uc.complaints >= maxComplaints/2 {
		uc.retire()
	}
	return false
}

// reuseResting takes back the connection with the most resets left, once so many rest
// that there must not be another; nil before. Only if even that one has none
// left the budget is overdrawn: a connection that may last is better than any
// number of them.
func (u *upstream) reuseResting(now time.Duration) *upstreamConn {
	var best *upstreamConn
	resting, most := 0, 0
	for _, uc := range u.conns {
		if !uc.resting || uc.retired {
			continue
		}
		resting++
		if !uc.link.Conn.CanOpen() || !uc.fewComplaints() {
			continue
		}
		room := uc.resets.left(uc.link.Conn.Resets(), now) - uc.link.Conn.Streams()
		if best == nil || room > most {
			best, most = uc, room
		}
	}
	if resting < maxResting || best == nil {
		return nil
	}
	best.resting = false
	return best
}
