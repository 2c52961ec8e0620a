package rank

import "time"

// Lease is the right to use one slot of one endpoint for one call.
//
// Shape: two words, made by Acquire, Rejoin or a notice, ended by exactly one Release.
// Copies are the same lease. The zero value is not a lease. The ticket keeps the data
// of its last lease, so the methods may be called until the ticket has its next one.
// Concurrency: a Lease belongs to the call that acquired it.
// Ordering: the slot is free when Release returns, not before.
type Lease struct {
	ticket *Ticket
	number uint64 // tells this lease from an earlier one of the same ticket
}

// Endpoint returns where the call goes; nil for the zero Lease.
func (l Lease) Endpoint() *Endpoint {
	if l.ticket == nil {
		return nil
	}
	return l.ticket.endpoint
}

// At returns the instant at which the lease was granted; 0 for the zero Lease.
func (l Lease) At() time.Duration {
	if l.ticket == nil {
		return 0
	}
	return l.ticket.at
}

// Waited returns the time that the call has spent in the queue, summed up if it was
// put back. Zero means that it never had to wait. Time at a worker that refused the
// call does not count.
func (l Lease) Waited() time.Duration {
	if l.ticket == nil {
		return 0
	}
	return l.ticket.waited
}

// Valid reports whether l came from the rank. It does not tell whether the
// lease has been released since.
func (l Lease) Valid() bool { return l.ticket != nil }

// active reports whether l is still to be released. The caller holds the rank's
// lock.
func (l Lease) active() bool {
	return l.ticket != nil && l.ticket.state == leased && l.ticket.leaseNumber == l.number
}

// Waiter hears whether a queued call gets a slot.
//
// Exactly one of the two methods is called, once, for every queued ticket unless a
// Leave returned true for it. It is called outside the rank's lock, on the goroutine
// that caused the outcome, which may not be the call's own: an implementation passes
// the answer to that goroutine and does not block.
type Waiter interface {
	// Granted hands over the lease. The call must release it, even if its caller has
	// gone.
	Granted(l Lease)
	// Refused tells why the call will not get a slot. The ticket is free again.
	Refused(r Reason)
}

// Notice tells one waiting call that it has a slot, or why it does not get one.
type Notice struct {
	Waiter Waiter
	// Lease is valid if Reason is NoReason.
	Lease Lease
	// Reason is other than NoReason if the call was refused.
	Reason Reason
}

// Deliver tells the waiter. Call it once, holding no lock that the waiter may
// need (R23).
func (g Notice) Deliver() {
	if g.Reason != NoReason {
		g.Waiter.Refused(g.Reason)
		return
	}
	g.Waiter.Granted(g.Lease)
}
