package rank

import "time"

// OnCancel is what becomes of a slot whose call is cancelled while it runs (R5).
type OnCancel uint8

const (
	// Hold keeps the slot as a ghost: the wire is free, but the worker's handler
	// is expected to go on. This is how handlers of Ruby and of Python's thread
	// pool behave.
	Hold OnCancel = iota + 1
	// Free gives the slot back at once: for workers that stop at a cancel.
	Free
	// Finish sends no cancel: the lease is released when the worker has answered.
	// It is the caller of the rank who does that; to the rank it is like Free.
	Finish
)

const (
	// ghostUnknown is how old a call whose method is not known is taken to
	// become.
	ghostUnknown = time.Second
	// ghostLate bounds for how long the slot of a call is held that is older than
	// nearly all of its kind.
	ghostLate = time.Second
	// ghostMost bounds how long a slot can be held for nobody.
	ghostMost = 30 * time.Second
)

// haunt decides what becomes of the slot of a call that is cancelled at now: it
// is held until nearly all calls of its method would have ended (R5), or free at
// once.
func (r *Rank) haunt(l Lease, now time.Duration) (until time.Duration, ghost bool) {
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

// ghostAge is how old a call of the given age is taken to become, had it not been
// cancelled: nearly all calls of its method end before that. What has run for
// longer than those already is expected to go on for a while: for a quarter of
// its age, at most a second, unless it is one of those that callers end.
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
