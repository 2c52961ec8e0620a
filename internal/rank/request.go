package rank

import (
	"sync"
	"time"
)

// Request is what the rank may know about a call (R21): neither its stream nor
// the protocol of its caller.
//
// Concurrency: the rank reads it under its own lock from Acquire or Rejoin
// until the call is granted, refused or has left; nobody writes it meanwhile.
type Request struct {
	// Method is what has been learned of such calls; nil if it is not one of
	// those that are known.
	Method *Method
	// Account is among whom slot time is shared fairly; nil is the common one.
	Account *Account
	// Lane is the call's class: 0 is the default one, others count from 1 in the
	// order of Options.Lanes.
	Lane uint8
	// OnCancel is what becomes of the slot if the call is cancelled while it
	// runs; 0 is as the endpoint has it.
	OnCancel OnCancel
	// Hash is equal for calls that belong together (RingHash).
	Hash uint64
	// Deadline is the instant from which the call is not worth starting;
	// 0 means none.
	Deadline time.Duration
	// Until is the instant at which the call stops waiting in any case; 0 means
	// that it never does.
	Until time.Duration
	// Arrived is the instant at which the call came in. It orders calls that
	// were put back, and it stays the same when a call is put back.
	Arrived time.Duration
	// Avoid is the endpoint that refused the call last, or nil. A free slot
	// elsewhere is preferred; if there is none this endpoint is used (R1).
	Avoid *Endpoint
}

// late reports whether starting the call at now would be work for nobody.
func (q *Request) late(now time.Duration) bool {
	return q.Deadline != 0 && now >= q.Deadline
}

// Ticket is one call's place in the rank: in the queue, or on a slot.
//
// Shape: embedded by value in the caller's call object, so that waiting needs
// no memory of its own. The zero value is ready. One ticket serves one lease
// at a time and may be used again when that lease is released or the ticket
// has left the queue.
// Concurrency: the fields below Request belong to the rank's lock.
type Ticket struct {
	_ [0]sync.Mutex // go vet reports a copy: the queue links tickets in place

	Request Request

	state  state
	place  place         // where it last joined its line
	waiter Waiter        // told the outcome; nil unless waiting
	joined time.Duration // when it joined the queue, while waiting
	waited time.Duration // time in the queue of this call, over all its turns
	turn   uint64        // number of its last lease, unique in the rank

	// Of its last lease; the rank writes them when it grants one, and whoever has
	// the lease reads them.
	endpoint *Endpoint
	at       time.Duration // when it was granted

	account  *Account
	method   *Method
	lane     *lane
	spared   bool          // waits although it should have been refused (R16)
	long     bool          // its method's calls usually run for long (R8)
	aside    bool          // its slot is one of Endpoint.aside
	unheard  bool          // one of Account.unheard
	early    bool          // it counts as long from its first moment, or has been recognized
	expected time.Duration // slot time that its account was charged in advance

	bound      *Endpoint // where it waits, if a policy has decided that already
	flow       *flow     // while waiting
	next, prev *Ticket   // neighbors in a line
}

// state is where a ticket stands.
type state uint8

const (
	idle    state = iota // knows no queue and no slot
	waiting              // in the line
	leased               // on a slot
)

// claim panics unless the ticket is free to ask for a slot. The caller holds
// the rank's lock.
func (t *Ticket) claim() {
	if t.state != idle {
		broken("ticket waits or has a lease already")
	}
}
