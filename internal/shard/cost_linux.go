package shard

import "time"

const (
	// A caller's connection may cost 1/costPart of a core. Connections below that, with
	// some hundred calls a second, are read as soon as they are ready; the others wait in
	// turn. While no other connection has bytes to read, waiting costs nothing.
	costPart = 100
	// leastOwed is the cost from which on a connection waits. It is one read that takes its
	// whole time, so that a few calls after a pause never wait.
	leastOwed = readTime
	// mostOwed bounds how long a connection that has become quiet still waits: costPart
	// times the difference to leastOwed.
	mostOwed = 2 * leastOwed
)

// readCost is the recent cost of reading a connection.
type readCost struct {
	owed  time.Duration // the cost, less 1/costPart of the time since; at most mostOwed
	asked time.Duration // when owed was last computed
}

// newReadCost returns the cost of a new connection, which has to wait: nothing is known of
// it yet, and an attacker may make one connection after the other.
func newReadCost(now time.Duration) readCost { return readCost{owed: mostOwed, asked: now} }

// usedUp reports whether the connection has to wait in turn.
func (s *readCost) usedUp(now time.Duration) bool {
	s.owed = max(s.owed-(now-s.asked)/costPart, 0)
	s.asked = now
	return s.owed >= leastOwed
}

// charge adds the time that the bytes of the connection have taken.
func (s *readCost) charge(took time.Duration) { s.owed = min(s.owed+took, mostOwed) }
