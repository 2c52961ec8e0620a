package rank

import (
	"slices"
	"time"
)

// serve gives free slots to waiting calls until one of both runs out.
func (r *Rank) serve(now time.Duration, into []Notice) []Notice {
	if len(r.dropped) > 0 {
		into = append(into, r.dropped...)
		clear(r.dropped)
		r.dropped = r.dropped[:0]
	}
	if r.waiting.Load() == 0 {
		return into
	}
	if r.noneExpected() {
		return r.refuseAllWaiting(into)
	}
	r.streams.age(now)
	if now-r.looked >= lookEvery {
		r.look(now)
	}
	for q := range r.queues {
		for q.waiting > 0 && r.slotFor(q) {
			f := r.next(q, now)
			if f == nil || q.endpoint == nil && r.betterToWait(f.list.first.method, now) {
				break
			}
			into = r.serveNext(f, now, into)
		}
	}
	return into
}

// next returns the flow of a queue that is served next; nil if none may be.
func (r *Rank) next(q *queue, now time.Duration) *flow {
	var next *flow
	for _, lane := range r.ordered {
		if next != nil && lane.priority < next.lane.lane.priority {
			break
		}
		l := &q.lanes[lane.index]
		if l.waiting == 0 || !r.mayStart(lane) {
			continue
		}
		if lane.index == 0 && !r.sortOut(l, now) {
			continue
		}
		if f := r.offer(l, now); f != nil && (next == nil || f.before(next)) {
			next = f
		}
	}
	return next
}

// sortOut moves long calls from the front of a lane to the lane of long calls: calls
// that are known to be long by now, or whose untried method has all slots that it may
// have. It reports whether calls are left.
func (r *Rank) sortOut(l *laneQueue, now time.Duration) bool {
	for l.waiting > 0 {
		f := l.next(r.capacity, now)
		if !r.waitsWithLong(f.list.first) {
			return true
		}
		r.relane(f.list.first)
		r.counts.decided[waitedForStreams]++
	}
	return false
}

// serveNext gives a slot to the flow's next call, or refuses the call if it is too late for
// it.
func (r *Rank) serveNext(f *flow, now time.Duration, into []Notice) []Notice {
	r.assess(f, now)
	before := f.list.newest
	t := f.list.next(r.order, now)
	newest := f.list.newest
	r.reordered(before, newest)
	if t.lane.index == 0 && r.waitsWithLong(t) { // more is known by now, or others of its method run
		r.relane(t)
		r.counts.decided[waitedForStreams]++
		return into
	}
	if reason := r.tooLate(t, now); reason != NoReason {
		return r.refuseWaiting(t, reason, into)
	}
	if newest {
		r.counts.decided[servedNewest]++
	}
	e := f.lane.queue.endpoint
	w := r.dequeue(t)
	t.waited += max(now-t.joined, 0)
	r.handovers.note(now)
	r.counts.decided[handedOver]++
	if e == nil {
		e = r.pick(&t.Request, now)
	}
	return append(into, Notice{Waiter: w, Lease: r.lease(t, e, now)})
}

// refuseWaiting refuses a waiting call.
func (r *Rank) refuseWaiting(t *Ticket, reason Reason, into []Notice) []Notice {
	r.counts.refused[reason]++
	account := t.account
	into = append(into, Notice{Waiter: r.dequeue(t), Reason: reason})
	r.forget(account)
	return into
}

// look charges accounts for calls that run longer than expected: at the end of the
// call the charge would come too late.
//
// Cost: O(accounts with running calls), ten times a second.
func (r *Rank) look(now time.Duration) {
	r.looked = now
	for _, a := range r.busy {
		r.bill(a, a.level, now, now)
		a.reconsider()
	}
}

// tooLate tells why a call should not start although its turn has come: its deadline
// has passed, or will before half of the calls of its method end (R16).
func (r *Rank) tooLate(t *Ticket, now time.Duration) Reason {
	q := &t.Request
	if q.late(now) {
		// Refused here rather than by its own timer: otherwise every release would
		// meet the expired call at the head again.
		return DeadlineExceeded
	}
	if q.Deadline == 0 || t.letThrough || !t.method.known() {
		return NoReason
	}
	run := time.Duration(t.method.median.Load())
	if !slices.ContainsFunc(r.free, isSure) {
		// The call would first wait inside the worker until a ghost ends.
		run = 2 * time.Duration(t.method.p95.Load())
	}
	state := QueueState{Now: now, QueueLength: 1, Ready: 1, Run: run}
	if r.admit(q, state) != WontFinish {
		return NoReason
	}
	if t.method.letThrough() {
		r.counts.decided[letThrough]++
		return NoReason
	}
	return WontFinish
}

// lease puts t on a free slot of e.
func (r *Rank) lease(t *Ticket, e *Endpoint, now time.Duration) Lease {
	r.leases++
	e.lastLease = r.leases
	e.inFlight++
	t.long = t.method.long() // its method may have become known while the call waited
	t.early = t.long || t.method.untried()
	switch {
	case e.adapt == nil:
	case t.long:
		r.exempt(t, e)
	default:
		e.adapt.started(e.inFlight-e.exempt, now)
	}
	r.refresh(e)
	t.lane.running++
	t.method.running++
	r.streams.begin(t.early, now)
	r.charge(t, now)
	r.use.begin(now)
	t.state, t.leaseNumber, t.endpoint, t.at = leased, r.leases, e, now
	return Lease{ticket: t, number: r.leases}
}

// mostLooked is how many endpoints with a free slot a choice is offered: the best of
// these is about as good as the best of all, and the time is bounded.
const mostLooked = 16

// pick asks the choice for an endpoint. It offers the endpoint that the call avoids
// only if no other has a free slot (R1).
func (r *Rank) pick(q *Request, now time.Duration) *Endpoint {
	free := r.free
	if last := len(free) - 1; last > 0 && q.Avoid != nil && q.Avoid.freeAt >= 0 {
		r.swapFree(q.Avoid.freeAt, last)
		free = free[:last]
	}
	if over := len(free) - mostLooked; over > 0 {
		free = free[r.leases%uint64(over+1):][:mostLooked]
	}
	if e := r.probe(free, now); e != nil {
		r.counts.decided[probedSlow]++
		return e
	}
	e := r.choose(q, free)
	if e == nil || e.freeAt < 0 {
		broken("choice of an endpoint without a free slot")
	}
	if r.slow > 0 && !e.pace.slow && slices.ContainsFunc(free, isSlow) {
		r.counts.decided[preferredFaster]++
	}
	return e
}

// isSure reports whether the free slots of an endpoint are known to be free.
func isSure(e *Endpoint) bool { return e.doubts == 0 }

// Release ends a lease and hands the slot to the next call. It appends to into the
// notices that it made and returns the result; the caller delivers them after
// unlocking (R23).
//
// RefusedByWorker pauses the slot (R1): 1 ms, doubled for each further refusal
// of this endpoint in a row, at most 250 ms; an OK ends the row. Cancelled may
// leave a ghost on it (R5). A paused slot is free again at the next Tick after its
// pause.
// Errors: panics if the lease was released before (internal error).
func (r *Rank) Release(l Lease, o Outcome, now time.Duration, into []Notice) []Notice {
	return r.ReleaseAt(l, o, now, now, into)
}

// ReleaseAt is Release for a slot that is known to stay busy after its call: it pauses
// at least until the instant until. With NotSent the endpoint cannot be reached before
// that instant, and all its idle slots pause as well: else each of them would be tried
// in turn. An until that is not after now changes nothing.
func (r *Rank) ReleaseAt(l Lease, o Outcome, until, now time.Duration, into []Notice) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.active() {
		broken("release of a lease that is not held")
	}
	t, e := l.ticket, l.ticket.endpoint
	t.state = idle
	e.inFlight--
	t.lane.running--
	t.method.running--
	r.streams.end(t.early, l.ticket.at, now)
	r.use.released(o, l.ticket.at, now)
	busy, ghost := r.learn(l, o, now)
	if t.exempt {
		t.exempt = false
		e.exempt--
		e.relimit()
	}
	if until = max(until, busy); until > now {
		slots := 1
		if o == NotSent {
			slots = e.limit - e.busy()
		}
		p := pause{until: until, endpoint: e, slots: slots}
		if ghost {
			p.since, p.ghostOf, p.level = now, t.account, t.lane.level
		}
		r.pause(p)
	}
	r.refresh(e)
	into = r.serve(now, into)
	r.forget(t.account)
	return into
}

// learn learns from a run that has ended, and returns until when its slot stays busy,
// and whether with a ghost.
func (r *Rank) learn(l Lease, o Outcome, now time.Duration) (until time.Duration, ghost bool) {
	t, e := l.ticket, l.ticket.endpoint
	run := max(now-l.ticket.at, 0)
	had := run
	switch o {
	case OK, Faulty:
		e.refusals, e.doubts = 0, 0
		if o == OK { // the time until a failure does not tell how long calls run
			r.ran(t.method, run, now)
		}
	case RefusedByWorker, Lost:
		until = now + e.refuse()
		r.counts.decided[pausedRefusing]++
		had = 0
	case MaybeRefused:
		// Without a pause a worker that refuses at once would attract all calls.
		until = now + min(max(t.method.usual(), minPause), maxPause)
	case Cancelled:
		if t.Request.late(now) {
			t.method.cut++
		}
		t.method.observeAtLeast(run, now)
		until, ghost = r.holdGhost(l, now)
		had = max(had, until-l.ticket.at)
	case NotSent:
		r.settle(t, l.ticket.at, 0, now, false)
		return 0, false
	case Failed:
	}
	r.learnPace(e, o, t.method, run, now)
	r.learnSlots(t, o, run, t.method.expectedRun(), now)
	r.settle(t, l.ticket.at, had, now, ghost)
	return until, ghost
}
