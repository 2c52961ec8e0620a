package rank

import (
	"math"
	"time"
)

// Nobody is crowded out: while others are there, a caller may have more than its
// share of the slots as long as it gives them back about as soon as others do. One
// that keeps each for much longer, for long calls or for ghosts of those that it
// has cancelled, leaves room for what the others use: a slot that it has cannot be
// taken back when they need it. See docs/decisions/031-room-for-others.md.
const (
	// slowTurn is how many times longer than the others a caller must keep a slot
	// before it has to leave room.
	slowTurn = 4
	// firstCalls is for how many calls the mean of its method stands where little
	// is known of a caller.
	firstCalls = 2
	// spareRoom is how many standard deviations of the slots that others use at a
	// time are left free for them, above the mean.
	spareRoom = 0.5
	mostRoom  = 1.5
	// presentFor is for how long at least a caller counts among those who share the
	// slots after its last call.
	presentFor = time.Second
)

// presence sums up the weights of the accounts that have had calls of late, in
// periods of presentFor.
//
// Concurrency: belongs to the rank's lock.
type presence struct {
	period  int           // number of the present one, from 2 on
	ends    time.Duration // when the present one does
	weights float64       // of those who had a call in it
	both    float64       // of those who had one in it or in the one before
}

// attend notes that the account has a call.
func (r *Rank) attend(a *Account, now time.Duration) {
	if now >= r.present.ends || a.attended != r.present.period {
		r.attendAnew(a, now)
	}
}

// attendAnew does so for its first call of a period.
func (r *Rank) attendAnew(a *Account, now time.Duration) {
	r.turnPeriod(now)
	r.present.count(a)
}

// turnPeriod begins a new period when it is time, for those of whom calls run.
func (r *Rank) turnPeriod(now time.Duration) {
	p := &r.present
	if now < p.ends {
		return
	}
	period := int(now/presentFor) + 2
	p.ends = time.Duration(period-1) * presentFor
	if p.both = 0; period == p.period+1 {
		p.both = p.weights
	}
	p.period, p.weights = period, 0
	for _, a := range r.busy {
		p.count(a)
	}
}

func (p *presence) count(a *Account) {
	if a.attended == p.period {
		return
	}
	p.weights += a.terms.Weight
	if a.attended != p.period-1 {
		p.both += a.terms.Weight
	}
	a.attended = p.period
}

// share is how many slots an account has a claim to while all those use theirs who
// have had calls of late; one at least.
func (r *Rank) share(a *Account, now time.Duration) float64 {
	r.turnPeriod(now)
	weights := r.present.both
	if a.attended < r.present.period-1 {
		weights += a.terms.Weight
	}
	return max(float64(r.capacity)*a.terms.Weight/max(weights, a.terms.Weight), 1)
}

// yields reports whether a call of the account must not have one of the free slots:
// they are room for others.
func (r *Rank) yields(t *Ticket, q *queue, now time.Duration) bool {
	a := t.account
	held := float64(a.running + a.ghosts + 1)
	if r.alone() || held <= r.share(a, now) {
		return false
	}
	own, others := r.loads(a, t.lane.priority, now)
	takes := ghostUnknown
	if t.method.known() {
		takes = t.method.occupancy()
	}
	if !t.Request.Silent && !slower(own, others, takes) {
		return false
	}
	spare, least := spareRoom, 0.0
	if own.slots > own.rate*longAfter.Seconds() {
		a.slow = now + longAfter
	}
	if t.Request.Silent || a.haunts(own, now) || now < a.slow {
		spare, least = mostRoom, min(math.Ceil(others.rate), 1)
	}
	room := max(math.Floor(others.slots+spare*math.Sqrt(others.slots)), least) + float64(r.waitingBeside(a, q, t.lane.priority))
	return held > float64(r.capacity)-room
}

// loads returns what the account has and what all others have, as far as their
// calls are not of a lower priority.
func (r *Rank) loads(a *Account, priority int, now time.Duration) (own, others load) {
	for i, l := range r.levels {
		mine := &a.shares[i].load
		mine.pass(now)
		l.load.pass(now)
		own.slots += mine.slots
		own.rate += mine.rate
		if l.priority >= priority {
			others.slots += max(l.load.slots-mine.slots, 0)
			others.rate += max(l.load.rate-mine.rate, 0)
		}
	}
	return own, others
}

// haunts reports whether most of the slots that the account has are ghosts.
func (a *Account) haunts(own load, now time.Duration) bool {
	a.haunted.pass(now)
	return a.haunted.slots > own.slots/2
}

// slower reports whether a caller keeps its slots for much longer than the others.
// By Little's law the mean time is that of the slots over the calls that begin. A
// caller of whom little is known is taken to be like its method.
func slower(own, others load, method time.Duration) bool {
	slots := own.slots + firstCalls*method.Seconds()
	return slots*others.rate > slowTurn*others.slots*(own.rate+firstCalls)
}

// waitingBeside counts the calls of others that wait in a queue and may have a slot.
func (r *Rank) waitingBeside(a *Account, q *queue, priority int) (waiting int) {
	for i := range q.lanes {
		if l := &q.lanes[i]; l.lane.priority >= priority && l.waiting > 0 && r.mayStart(l.lane) {
			waiting += l.waiting - l.waitingOf(a)
		}
	}
	return waiting
}

// mayStartNow reports whether a call that comes may have a free slot before all
// that wait in the queue. By the invariant none of those may have it: others of its
// lane wait for the same reason, unless they only leave it to others.
func (r *Rank) mayStartNow(t *Ticket, q *queue, now time.Duration) bool {
	l := &q.lanes[t.lane.index]
	return r.mayStart(t.lane) && (r.alone() || !r.yields(t, q, now)) && (l.waiting == 0 || r.offer(l, now) == nil)
}

// reconsider has the account's calls that wait be looked at again.
func (a *Account) reconsider() {
	for _, f := range a.flows {
		f.yields = false
		f.lane.moved(f)
	}
}

// offer returns the flow of a lane that is served next; nil if all that wait leave
// the free slots to others. At least one call waits.
//
// Those that do are behind all others until something changes for them: each look
// ten times a second is such a change.
func (r *Rank) offer(l *laneQueue, now time.Duration) *flow {
	for {
		f := l.next(r.capacity, now)
		switch {
		case !r.yields(f.line.first, l.queue, now):
			if f.yields { // who looks may have no use for it
				f.yields = false
				r.poke()
			}
			return f
		case f.yields:
			r.wakeAt(now + lookEvery)
			return nil
		}
		l.yield(f)
	}
}

// Speaks says that a call whose Request was Silent has sent something, whether it
// waits or not. Somebody may have a free slot by that: Wake asks for a Tick then.
func (r *Rank) Speaks(t *Ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent := t.Request.Silent
	t.Request.Silent = false
	if t.state != waiting || !silent || t.place == head {
		return
	}
	t.flow.line.speaks(t)
	t.flow.yields = false
	t.flow.lane.moved(t.flow)
	if len(r.free) > 0 {
		r.poke()
	}
}

// Crowding returns for how long a call has waited that has more of a claim to the
// lease's slot than the lease: its account has less than its share of the slots, and
// that of the lease runs more calls than its own. It is 0 if there is none.
func (r *Rank) Crowding(l Lease, now time.Duration) (waited time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.held() || r.alone() {
		return 0
	}
	a, e := l.ticket.account, l.ticket.endpoint
	if float64(a.running) <= r.share(a, now) {
		return 0
	}
	if e.queue != nil {
		return r.waitedBeside(a, e.queue, now)
	}
	return r.waitedBeside(a, r.queue, now)
}

// waitedBeside returns for how long a call of somebody else has waited in the queue
// who has less than its share. It looks at the first few who would be served.
func (r *Rank) waitedBeside(a *Account, q *queue, now time.Duration) (waited time.Duration) {
	for i := range q.lanes {
		l := &q.lanes[i]
		for _, h := range []*flowHeap{&l.modest, &l.greedy} {
			for _, f := range h.flows[:min(len(h.flows), mostChanged)] {
				if b := f.account; b != a && float64(b.running+b.ghosts+1) <= r.share(b, now) {
					waited = max(waited, now-f.line.first.joined, 1)
				}
			}
		}
	}
	return waited
}

// Wanted reports whether a call waits for a slot that does not just leave those
// that are free to others. It costs O(lanes), and if a policy binds calls that for each
// endpoint, under the lock.
func (r *Rank) Wanted() bool {
	if r.Waiting() == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	queues := []*queue{r.queue}
	for _, e := range r.endpoints {
		if e.queue != nil {
			queues = append(queues, e.queue)
		}
	}
	for _, q := range queues {
		for i := range q.lanes {
			l := &q.lanes[i]
			if l.waiting > 0 && (len(l.modest.flows) > 0 || !l.greedy.flows[0].yields) {
				return true
			}
		}
	}
	return false
}
