package rank

import "time"

// OnCancel says what happens to a slot whose call is cancelled while it runs (R5).
type OnCancel uint8

const (
	// Hold keeps the slot as a ghost: the worker's handler is expected to go on, as
	// handlers of Ruby and of Python's thread pool do.
	Hold OnCancel = iota + 1
	// Free gives the slot back at once: for workers that stop at a cancel.
	Free
	// Finish sends no cancel: the relay releases the lease when the worker has answered.
	// To the rank it is like Free.
	Finish
)

// String returns the word that configurations have for it; zero is auto.
func (o OnCancel) String() string { return [...]string{"auto", "hold", "free", "finish"}[o] }

const (
	// ghostUnknown is the run time that a call of an unknown method is taken to have.
	ghostUnknown = time.Second
	// ghostLate bounds how long a slot is held for a call that is older than nearly all
	// calls of its method.
	ghostLate = time.Second
	// ghostMost bounds how long a ghost can hold a slot.
	ghostMost = 30 * time.Second
)

// holdGhost decides about the slot of a call that is cancelled at now: a ghost holds it
// until nearly all calls of its method would have ended (R5), or it is free at once.
func (r *Rank) holdGhost(l Lease, now time.Duration) (until time.Duration, ghost bool) {
	e := l.ticket.endpoint
	how := l.ticket.Request.OnCancel
	if how == 0 {
		how = e.onCancel
	}
	if how != Hold {
		return now, false
	}
	if until = l.ticket.at + l.ticket.ghostAge(now-l.ticket.at); until > now {
		r.counts.decided[heldGhost]++
		return until, true
	}
	e.doubts++
	return now, false
}

// ghostAge is the run time that a cancelled call of the given age is taken to have:
// nearly all calls of its method end before that. A call that has run for longer
// already is expected to go on for a quarter of its age, at most a second, unless it is
// a long call, which its caller ends.
func (t *Ticket) ghostAge(age time.Duration) time.Duration {
	most := ghostUnknown
	if m := t.method; m.known() {
		most = min(time.Duration(m.p95.Load()), ghostMost)
	}
	if t.long {
		return most
	}
	return max(most, age+min(age/4, ghostLate))
}
