package rank

import (
	"sync"
	"time"
)

// Request is what the rank knows about a call (R21). It does not know the stream, nor
// the protocol of the caller.
//
// Concurrency: the rank reads it under its own lock from Acquire or Rejoin
// until the call is granted, refused or has left; it must not change meanwhile.
type Request struct {
	// Method is the call's method; nil if that is unknown.
	Method *Method
	// Account is the account that the call is charged to; nil is the common one.
	Account *Account
	// Lane is the call's class: 0 is the default one, others count from 1 in the
	// order of Options.Lanes.
	Lane uint8
	// OnCancel says what happens to the slot if the call is cancelled while it runs; 0
	// takes the value of the endpoint.
	OnCancel OnCancel
	// Hash is equal for calls that belong together (ByHash); 0 is that of calls that do not.
	Hash uint64
	// Deadline is the instant from which the call is not worth starting;
	// 0 means none.
	Deadline time.Duration
	// Until is the instant at which the call stops waiting in any case; 0 means never.
	Until time.Duration
	// Arrived is the instant at which the call came in. It stays the same when a call
	// is put back.
	Arrived time.Duration
	// Avoid is the endpoint that refused the call last, or nil. It is used only if no
	// slot is free elsewhere (R1).
	Avoid *Endpoint
}

// late reports whether the deadline has passed at now.
func (q *Request) late(now time.Duration) bool {
	return q.Deadline != 0 && now >= q.Deadline
}

// Ticket is one call as the rank sees it: in the queue, or on a slot.
//
// Shape: embedded by value in the caller's call object, so that waiting needs
// no memory of its own. The zero value is ready. One ticket serves one lease
// at a time and may be used again when that lease is released or the ticket
// has left the queue.
// Concurrency: the fields below Request belong to the rank's lock.
type Ticket struct {
	_ [0]sync.Mutex // go vet reports a copy: the queue links tickets in place

	Request Request

	state       state
	position    position      // the end at which it last joined its list
	waiter      Waiter        // hears the outcome; nil unless waiting
	joined      time.Duration // when it joined the queue, while waiting
	waited      time.Duration // time in the queue, summed up if the call was put back
	leaseNumber uint64        // number of its last lease, unique in the rank

	// About its last lease: the rank writes them when it grants the lease, and the
	// holder of the lease reads them.
	endpoint *Endpoint
	at       time.Duration // when it was granted

	account    *Account
	method     *Method
	lane       *lane
	letThrough bool          // waits although it should have been refused (R16)
	long       bool          // its method's calls usually run for long (R8)
	exempt     bool          // counts in Endpoint.exempt
	unheard    bool          // counts in Account.unheard
	early      bool          // counts as long although it is young, see streams
	expected   time.Duration // slot time that its account was charged in advance

	flow       *flow   // while waiting
	next, prev *Ticket // neighbors in a list
}

// state is whether a ticket waits or has a slot.
type state uint8

const (
	idle    state = iota // neither
	waiting              // in the queue
	leased               // on a slot
)

// claim panics unless the ticket is free to ask for a slot. The caller holds
// the rank's lock.
func (t *Ticket) claim() {
	if t.state != idle {
		broken("ticket waits or has a lease already")
	}
}

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
