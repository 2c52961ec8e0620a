package rank

import (
	"sync"
	"sync/atomic"
	"time"
)

// Options are the bounds and the policies of a Rank.
type Options struct {
	// QueueLength is how many calls may wait. With 0 a call that finds no free
	// slot is refused at once. Calls that a worker refused come on top of it,
	// at most one for each slot.
	QueueLength int
	// Order makes the queue; nil means FIFO.
	Order Order
	// Admit decides who may wait; nil means BoundedLength.
	Admit Admission
	// Choose picks the endpoint; nil means LeastLoaded.
	Choose Choice
}

// Rank is a set of endpoints with their free slots, and the queue of calls that
// wait for one. The package comment tells how it behaves.
//
// Invariant: between two calls of its methods there is no free slot, or nobody
// waits.
type Rank struct {
	// What every Acquire and Release looks at fills one line of the processor's
	// cache: with several shards another core often has it.
	mu      sync.Mutex   // a leaf: no other lock is taken under it (R23)
	turn    uint64       // leases so far
	waiting atomic.Int64 // tickets in line; written under mu, read from anywhere
	free    []*Endpoint  // those with a free slot, in no order; see Endpoint.freeAt
	choose  Choice       // immutable
	ready   atomic.Int64 // ready endpoints; written under mu, read from anywhere

	line      Line
	endpoints []*Endpoint // not removed, in the order of Add
	pauses    []pause     // by instant, at most one for each slot
	nextIndex int

	// Immutable.
	queueLength int
	admit       Admission
	wake        chan struct{} // holds one token
	_           [32]byte      // an object of whole lines begins with one
}

// New returns a rank without endpoints.
func New(o Options) *Rank {
	if o.Order == nil {
		o.Order = FIFO
	}
	if o.Admit == nil {
		o.Admit = BoundedLength
	}
	if o.Choose == nil {
		o.Choose = LeastLoaded
	}
	return &Rank{
		queueLength: o.QueueLength,
		admit:       o.Admit,
		choose:      o.Choose,
		wake:        make(chan struct{}, 1),
		line:        o.Order(),
	}
}

// Acquire asks for a slot: at once if one is free, else by waiting, else not at
// all.
//
// Granted: the lease is valid, w is not used. Queued: w will be told, unless
// Leave returns true first. Refused: the reason tells why; DeadlineExceeded if
// the deadline has passed already, otherwise what Options.Admit said.
// Errors: panics if the ticket waits or has a lease (internal error).
// Concurrency: allocates nothing, except what a replaced policy does.
func (r *Rank) Acquire(t *Ticket, w Waiter, now time.Duration) (Lease, Verdict, Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	t.waited = 0
	if t.Request.late(now) {
		return Lease{}, Refused, DeadlineExceeded
	}
	if r.canStart() {
		return r.lease(t, now), Granted, NoReason
	}
	if reason := r.admit(&t.Request, r.load(now)); reason != NoReason {
		return Lease{}, Refused, reason
	}
	r.enqueue(t, w, Tail, now)
	return Lease{}, Queued, NoReason
}

// Rejoin puts back a call whose worker refused it (R1): onto another free slot
// at once, or to the head of the queue.
//
// The lease has been released before. The ticket keeps Request.Arrived, and its
// time in the queue goes on adding up; the caller sets Request.Avoid. A full
// queue refuses nobody here; the verdict is Refused only if the deadline has
// passed.
// Errors: panics like Acquire.
func (r *Rank) Rejoin(t *Ticket, w Waiter, now time.Duration) (Lease, Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	if t.Request.late(now) {
		return Lease{}, Refused
	}
	if r.canStart() {
		return r.lease(t, now), Granted
	}
	r.enqueue(t, w, Head, now)
	return Lease{}, Queued
}

// Leave takes a call out of the queue, because its caller has gone or its time
// is up.
//
// True: it was waiting, and nobody will tell its waiter anything. False: it is
// not in the queue; if it was queued, its waiter has been told or is about to
// be, and a lease that arrives must be released.
func (r *Rank) Leave(t *Ticket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.state != waiting {
		return false
	}
	r.line.Remove(t)
	r.dequeued(t)
	return true
}

// Release ends a lease and hands the slot to the head of the queue. It appends
// to into the grants that it made and returns the result; the caller delivers
// them after unlocking (R23).
//
// RefusedByWorker pauses the slot (R1): 1 ms, doubled for each further refusal
// of this endpoint in a row, at most 250 ms; an OK ends the row. A paused slot
// is free again at the Tick that comes after.
// Errors: panics if the lease was released before (internal error).
func (r *Rank) Release(l Lease, o Outcome, now time.Duration, into []Grant) []Grant {
	return r.ReleaseAt(l, o, now, now, into)
}

// ReleaseAt is Release for a slot that is known to stay busy after its call:
// it pauses until the instant until at least. An until that is not after now
// makes no difference.
func (r *Rank) ReleaseAt(l Lease, o Outcome, until, now time.Duration, into []Grant) []Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.held() {
		broken("release of a lease that is not held")
	}
	l.ticket.state = idle
	e := l.endpoint
	e.inFlight--
	switch o {
	case OK:
		e.refusals = 0
	case RefusedByWorker:
		until = max(until, now+e.refused())
	case Failed, Cancelled:
		// Neither tells anything about the worker's threads.
	}
	if until > now {
		r.pause(e, until)
	}
	r.refresh(e)
	return r.serve(now, into)
}

// Ready returns the number of ready endpoints. It takes no lock.
func (r *Rank) Ready() int { return int(r.ready.Load()) }

// Waiting returns the number of calls in the queue. It takes no lock.
func (r *Rank) Waiting() int { return int(r.waiting.Load()) }

// canStart reports whether a call that comes now may have a slot at once: one
// is free and nobody waits before it.
func (r *Rank) canStart() bool { return len(r.free) > 0 && r.waiting.Load() == 0 }

func (r *Rank) load(now time.Duration) Load {
	return Load{Now: now, Waiting: r.Waiting(), QueueLength: r.queueLength, Ready: r.Ready()}
}

func (r *Rank) enqueue(t *Ticket, w Waiter, at Place, now time.Duration) {
	t.state, t.waiter, t.joined = waiting, w, now
	r.line.Join(t, at)
	r.waiting.Add(1)
}

// dequeued notes that t is out of the line and returns whom to tell.
func (r *Rank) dequeued(t *Ticket) Waiter {
	w := t.waiter
	t.state, t.waiter = idle, nil
	r.waiting.Add(-1)
	return w
}

// serve gives free slots to waiting calls until either runs out.
func (r *Rank) serve(now time.Duration, into []Grant) []Grant {
	for len(r.free) > 0 && r.waiting.Load() > 0 {
		t := r.line.Pop(now)
		w := r.dequeued(t)
		if t.Request.late(now) {
			// Refused here rather than left for its own timer: an expired call
			// at the head would be met again at every release.
			into = append(into, Grant{Waiter: w, Reason: DeadlineExceeded})
			continue
		}
		t.waited += max(now-t.joined, 0)
		into = append(into, Grant{Waiter: w, Lease: r.lease(t, now)})
	}
	return into
}

// lease puts t on a free slot; there is one.
func (r *Rank) lease(t *Ticket, now time.Duration) Lease {
	e := r.pick(&t.Request)
	r.turn++
	e.turn = r.turn
	e.inFlight++
	r.refresh(e)
	t.state, t.turn = leased, r.turn
	return Lease{endpoint: e, ticket: t, turn: r.turn, at: now, waited: t.waited}
}

// pick asks the choice, and keeps from it the endpoint that the call avoids if
// there is another (R1).
func (r *Rank) pick(q *Request) *Endpoint {
	free := r.free
	if last := len(free) - 1; last > 0 && q.Avoid != nil && q.Avoid.freeAt >= 0 {
		r.swapFree(q.Avoid.freeAt, last)
		free = free[:last]
	}
	e := r.choose(q, free)
	if e == nil || e.freeAt < 0 {
		broken("choice of an endpoint without a free slot")
	}
	return e
}
