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
