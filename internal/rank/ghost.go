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
	// ghostMost bounds how long a slot can be held for nobody.
	ghostMost = 30 * time.Second
)

// ghostUntil returns the instant until which the slot of a call that is
// cancelled at now is held: until nearly all calls of its method would have
// ended (R5). 0 means that it is not.
func (l Lease) ghostUntil() time.Duration {
	q := &l.ticket.Request
	how := q.OnCancel
	if how == 0 {
		how = l.endpoint.onCancel
	}
	if how != Hold {
		return 0
	}
	age := ghostUnknown
	if m := l.ticket.method; m.known() {
		age = min(time.Duration(m.p95.Load()), ghostMost)
	}
	return l.at + age
}
