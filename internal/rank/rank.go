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
	// StreamSlots is how many slots long calls may have (R8); 0 means all but
	// one, and at least half.
	StreamSlots int
	// Lanes are the classes of calls beside the default one.
	Lanes []LaneOptions
	// ByHash has calls run and wait at the endpoint of their Request.Hash, so that calls
	// with the same one meet, also while others are idle. No endpoint has more than
	// 1.25 times as many calls as others on average. A full queue makes room for others
	// only among the calls of the same endpoint.
	ByHash bool
	// Order decides how one account's calls are served; nil means Adaptive.
	Order Order
	// Admit decides who may wait; nil means InTime.
	Admit Admission
	// Choose picks the endpoint among those with a free slot; nil means Fastest.
	Choose Choice
}

// Rank is a set of endpoints with their free slots, and the queue of calls that
// wait for a slot. The package comment tells how it behaves.
//
// Invariant: between two calls of its methods no call waits that may have one of
// the free slots.
type Rank struct {
	// These fields are read by every Acquire and Release. They fill the first lines of
	// the processor's cache: with several shards another core often has those.
	mu      sync.Mutex   // a leaf: no other lock is taken under it (R23)
	leases  uint64       // leases so far
	waiting atomic.Int64 // tickets in the queue; written under mu, read from anywhere
	free    []*Endpoint  // endpoints with a free slot, in no order; see Endpoint.freeAt
	choose  Choice       // immutable
	ready   atomic.Int64 // ready endpoints; written under mu, read from anywhere

	capacity  int // slots of all endpoints that get calls
	slotsFree int // free slots among them
	use       use

	overloaded atomic.Int64 // lists whose newest call goes first; written under mu

	common   *Account // for calls without an account
	unknown  *Method  // for calls whose method is not known
	lanes    []*lane  // the list is immutable, the lanes are not
	levels   []*level // the same
	recent   recent
	streams  streams
	reserved int // slots that lanes have reserved; immutable
	outage   bool
	counts   counters

	queue     *queue  // calls that wait for any endpoint
	ordered   []*lane // by priority; immutable
	handovers handovers
	slow      int           // slow endpoints
	verySlow  int           // endpoints that are so slow that they have lost slots
	again     time.Duration // when waiting calls are looked at again for slots that are free; 0: never
	compareIn int           // runs until endpoints are compared again
	paces     []int         // scratch of compare
	limits    []int         // scratch of found
	looked    time.Duration // when running calls were last charged
	dropped   []Notice      // refusals that are not delivered yet

	up        []*Endpoint // endpoints that get new calls
	endpoints []*Endpoint // not removed, in the order of Add
	pauses    pauses      // at most one for each slot
	nextIndex int
	accounts  map[string]*Account
	busy      []*Account // accounts with running calls
	pool      flowPool

	// See Configure.
	queueLength int
	order       Order
	admit       Admission

	// Immutable.
	byHash bool          // each endpoint has a queue
	wake   chan struct{} // holds one token
}

// New returns a rank without endpoints.
func New(o Options) *Rank {
	o.complete()
	lanes := newLanes(o.Lanes)
	r := &Rank{
		queueLength: o.QueueLength,
		order:       o.Order,
		admit:       o.Admit,
		choose:      o.Choose,
		byHash:      o.ByHash,
		wake:        make(chan struct{}, 1),
		unknown:     &Method{},
		lanes:       lanes,
		levels:      levelsOf(lanes),
		ordered:     byPriority(lanes),
		reserved:    reserves(lanes),
		streams:     streams{limit: o.StreamSlots},
		accounts:    make(map[string]*Account),
	}
	r.queue = newQueue(nil, lanes, &r.pool)
	r.common = r.newAccount("", Terms{})
	r.common.refs = 1 // for ever
	return r
}

// Method returns a new handle for what is learned of the calls of one method. The
// caller keeps it: a second call for the same name makes another handle.
func (r *Rank) Method(name string) *Method { return &Method{name: name, uniform: true} }

// Unnamed returns a handle for the calls of a method that may not exist: what is
// learned of them decides about streams only. Name makes it a known method.
func (r *Rank) Unnamed() *Method { return &Method{uniform: true} }

// Tried says that the calls of a method are not streams, before the first of them has
// ended.
func (r *Rank) Tried(m *Method) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.brief = true
}

// Name makes a method from Unnamed a known one.
func (r *Rank) Name(m *Method, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.name = name
}

// Acquire asks for a slot: the call starts at once, waits, or is refused.
//
// Granted: the lease is valid, w is not used. Queued: w will be told, unless
// Leave returns true first. Refused: the reason tells why; DeadlineExceeded if
// the deadline has passed already, RateLimited and TooManyCalls by the terms of
// its account, NoneReady by SetOutage, otherwise what Options.Admit said.
// Errors: panics if the ticket waits or has a lease (internal error).
// Concurrency: allocates only when more accounts wait than ever before.
func (r *Rank) Acquire(t *Ticket, w Waiter, now time.Duration) (Lease, Reply, Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	t.waited, t.letThrough = 0, false
	if t.Request.late(now) {
		return r.refuse(DeadlineExceeded)
	}
	r.prepare(t, now)
	if reason := t.account.admit(now); reason != NoReason {
		return r.refuse(reason)
	}
	r.use.arrived++
	return r.begin(t, w, now)
}

func (r *Rank) refuse(reason Reason) (Lease, Reply, Reason) {
	r.counts.refused[reason]++
	return Lease{}, Refused, reason
}

// Rejoin puts back a call whose worker refused it (R1): onto another free slot
// at once, or to the head of its account's list.
//
// The lease has been released before. The ticket keeps Request.Arrived, and its
// time in the queue goes on adding up; the caller sets Request.Avoid. A full
// queue does not refuse it; the reply is Refused only if the deadline has
// passed. In an outage the call waits for the next Tick, which refuses it.
// Errors: panics like Acquire.
func (r *Rank) Rejoin(t *Ticket, w Waiter, now time.Duration) (Lease, Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	if t.Request.late(now) {
		r.counts.refused[DeadlineExceeded]++
		return Lease{}, Refused
	}
	r.prepare(t, now)
	q := r.queueFor(t)
	if e := r.endpointFor(t, q, now); e != nil {
		r.counts.decided[startedAtOnce]++
		return r.lease(t, e, now), Granted
	}
	r.enqueue(t, w, q, head, now)
	if r.noneExpected() {
		r.poke()
	}
	return Lease{}, Queued
}

// AcquireFree takes a slot if one is free and no call waits. It never waits.
func (r *Rank) AcquireFree(t *Ticket, now time.Duration) (Lease, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	t.waited = 0
	if r.waiting.Load() > 0 || t.Request.late(now) {
		return Lease{}, false
	}
	r.prepare(t, now)
	e := r.endpointFor(t, r.queueFor(t), now)
	if e == nil || e == t.Request.Avoid {
		return Lease{}, false
	}
	r.counts.decided[startedFree]++
	r.use.arrived++
	return r.lease(t, e, now), true
}

// Leave takes a call out of the queue, because its caller has gone or its time
// is up.
//
// True: the call was waiting, and its waiter will not be called. False: the call is
// not in the queue; if it was queued, its waiter has been called or is about to
// be, and a lease that arrives must be released.
func (r *Rank) Leave(t *Ticket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.state != waiting {
		return false
	}
	r.dequeue(t)
	r.forget(t.account)
	if len(r.free) > 0 && r.waiting.Load() > 0 {
		r.poke() // others may have left free slots to it
	}
	return true
}

// Ready returns the number of ready endpoints. It takes no lock.
func (r *Rank) Ready() int { return int(r.ready.Load()) }

// Waiting returns the number of calls in the queue. It takes no lock.
func (r *Rank) Waiting() int { return int(r.waiting.Load()) }

// prepare looks up what the request leaves out.
func (r *Rank) prepare(t *Ticket, now time.Duration) {
	q := &t.Request
	if t.account = q.Account; t.account == nil {
		t.account = r.common
	}
	if t.method = q.Method; t.method == nil {
		t.method = r.unknown
	}
	t.method.fade(now)
	t.long = t.method.long()
	r.streams.age(now)
	t.lane = r.laneOf(t)
	t.lane.asked.note(t.account, now)
}

// endpointFor returns the endpoint on which the call may start now, or nil if the call
// has to wait in q.
func (r *Rank) endpointFor(t *Ticket, q *queue, now time.Duration) *Endpoint {
	if !r.slotFor(q) || !r.mayStartNow(t, q, now) {
		return nil
	}
	if q.endpoint != nil {
		return q.endpoint
	}
	if r.betterToWait(t.method, now) {
		r.counts.decided[waitedForFaster]++
		return nil
	}
	if r.waiting.Load() > 0 { // for other slots
		r.handovers.begin(now)
	}
	return r.pick(&t.Request, now)
}

// mayWait decides whether the call may join q. In a full queue it drops a waiting
// call that has less of a claim.
func (r *Rank) mayWait(t *Ticket, q *queue, now time.Duration) Reason {
	if r.noneExpected() {
		return NoneReady
	}
	l := &q.lanes[t.lane.index]
	state := QueueState{
		Now: now, Waiting: r.Waiting(), QueueLength: r.queueLength, Ready: r.Ready(),
		Wait: r.expectedWait(l, t.account, now), Run: t.method.usual(),
	}
	reason := r.admit(&t.Request, state)
	switch {
	case reason == WontFinish && t.method.letThrough():
		r.counts.decided[letThrough]++
		t.letThrough = true
		reason = BoundedLength(&t.Request, state)
	case reason != QueueFull:
		return reason
	}
	if reason == QueueFull && r.queueLength > 0 {
		if victim := q.victim(l, t.account); victim != nil {
			r.drop(victim)
			return NoReason
		}
	}
	return reason
}

// drop takes a call out of the queue to make room for another one. The next Tick or
// Release returns the notice for its waiter.
func (r *Rank) drop(t *Ticket) {
	w := r.dequeue(t)
	r.forget(t.account)
	r.counts.decided[evicted]++
	r.counts.refused[QueueFull]++
	r.dropped = append(r.dropped, Notice{Waiter: w, Reason: QueueFull})
	r.poke()
}

func (r *Rank) enqueue(t *Ticket, w Waiter, q *queue, at position, now time.Duration) {
	t.state, t.waiter, t.joined = waiting, w, now
	r.noteCall(t.account, now)
	if r.waiting.Add(1) == 1 {
		r.handovers.begin(now)
	}
	q.join(t, at)
	r.counts.decided[queued]++
	r.countWait(t)
}

// dequeue takes t out of its list and returns its waiter.
func (r *Rank) dequeue(t *Ticket) Waiter {
	w := t.waiter
	r.unqueue(t)
	t.state, t.waiter = idle, nil
	r.waiting.Add(-1)
	return w
}

// unqueue takes t out of its list.
func (r *Rank) unqueue(t *Ticket) {
	l := &t.flow.list
	newest := l.newest
	t.flow.lane.queue.remove(t)
	r.reordered(newest, l.newest) // an empty list forgets its order
}

// Retry asks for a slot for another attempt of a call after its last one has failed:
// like Acquire, but it is the same call. Its time in the queue goes on adding up, the
// terms of its account are not applied again, and it joins at the tail.
//
// The lease of the last attempt has been released before; the caller sets
// Request.Avoid, and Request.Until anew.
// Errors: panics like Acquire.
func (r *Rank) Retry(t *Ticket, w Waiter, now time.Duration) (Lease, Reply, Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	if t.Request.late(now) {
		return r.refuse(DeadlineExceeded)
	}
	r.prepare(t, now)
	r.use.arrived++
	return r.begin(t, w, now)
}

// begin starts a call at once, or lets it wait at the tail, or refuses it.
func (r *Rank) begin(t *Ticket, w Waiter, now time.Duration) (Lease, Reply, Reason) {
	q := r.queueFor(t)
	if e := r.endpointFor(t, q, now); e != nil {
		r.counts.decided[startedAtOnce]++
		return r.lease(t, e, now), Granted, NoReason
	}
	if reason := r.mayWait(t, q, now); reason != NoReason {
		return r.refuse(reason)
	}
	r.enqueue(t, w, q, tail, now)
	return Lease{}, Queued, NoReason
}
