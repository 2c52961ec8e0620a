package shard

import "time"

const (
	// shareOf is which part of a core a caller's connection has for itself. Those
	// that keep below, with some hundred calls a second, are read as soon as they
	// have sent something; the others wait in turn. Who waits while nobody else has
	// anything to be read loses nothing.
	shareOf = 100
	// leastOwed is what makes a connection wait. It is one read that takes its whole
	// time, so that a few calls after a pause never wait.
	leastOwed = readTime
	// mostOwed bounds how long a connection that has become quiet goes on to wait:
	// shareOf times what it is more than leastOwed.
	mostOwed = 2 * leastOwed
)

// share is what a connection has cost of late.
type share struct {
	owed  time.Duration // what it has cost, less its share of the time since; at most mostOwed
	asked time.Duration // when that was
}

// newShare begins with a connection that waits: nothing is known of it yet, and an
// attacker may make one after the other.
func newShare(now time.Duration) share { return share{owed: mostOwed, asked: now} }

// usedUp reports whether the connection has to wait in turn.
func (s *share) usedUp(now time.Duration) bool {
	s.owed = max(s.owed-(now-s.asked)/shareOf, 0)
	s.asked = now
	return s.owed >= leastOwed
}

// charge notes how long the bytes of the connection have taken.
func (s *share) charge(took time.Duration) { s.owed = min(s.owed+took, mostOwed) }
