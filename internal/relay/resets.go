package relay

import "time"

const (
	// maxResets is how many streams may be reset on one upstream connection at
	// once, and resetPause is what it takes until there is room for one more:
	// 25 a second. Node ends a connection, and with it everybody's calls, after
	// 1,000 and 33 a second (R14).
	maxResets  = 800
	resetPause = time.Second / 25
	// maxResting bounds the connections of one endpoint and shard that get no
	// new calls because of their resets. Together they win 400 resets a second
	// back, more than the worker of one endpoint is likely to be sent for long.
	maxResting = 16
	// maxComplaints is how many streams a peer may reset as faulty before new
	// calls go to a fresh connection. Node counts requests that it finds invalid
	// and ends a connection at 1,000, however long it has lived [E].
	maxComplaints = 800
)

// resetBudget knows how many resets a peer may still be sent on a connection.
// It never says more than a count of each reset at its own time would.
type resetBudget struct {
	seen uint64        // resets that are accounted for
	paid time.Duration // when the last of them has been won back
}

// left returns how many resets more there may be, given the number of those
// that were ever written on the connection. It can be negative.
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

// takes reports whether a new call may be sent on the connection. Each of its
// open streams may come to be reset, so that one more is opened only while
// there would be a reset left for all of them (R14).
func (uc *upstreamConn) takes(now time.Duration) bool {
	conn := uc.link.Conn
	if !conn.CanOpen() {
		// One that has no room while it is empty will never have any.
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
	if left < maxResets/2 { // else it is full, not worn out
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
