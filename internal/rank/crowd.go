package rank

import (
	"math"
	"time"
)

// Nobody is crowded out. While somebody else has asked for a slot of late, a caller
// gets all but one of them; and beyond its share only what it gives back about as
// soon as others do. One that keeps its slots for longer, for long calls, for calls
// that do not move or for ghosts of those that it has cancelled, and one of whom
// that is not known yet, leaves room for what the others use: a slot that it has
// cannot be taken back when they need it. See docs/decisions/084-all-but-one-slot.md.
const (
	// slowTurn is how many times longer than the others a caller may keep a slot
	// and need not leave room.
	slowTurn = 4
	// spareRoom is how many standard deviations of the slots that others use at a
	// time are left free for them, above the mean.
	spareRoom = 0.5
	mostRoom  = 1.5
	// longTurn is how long a caller keeps a slot who leaves the most room, and slowFor
	// for how long it goes on to do so.
	longTurn = 3 * time.Second
	slowFor  = 10 * time.Second
	// secondSlot is how many slots others use who are left two: with one, those who
	// keep it busy more than half of the time would mostly wait for each other.
	secondSlot = 0.5
	// askedFor is for how long somebody counts who has asked for a slot.
	askedFor = time.Minute
	// presentFor is for how long at least a caller counts among those who share the
	// slots after its last call.
	presentFor = time.Second
)

// asked tells whether somebody else has asked for a slot of late.
type asked struct {
	by     string        // the key of who did last
	until  time.Duration // when that was long ago
	others time.Duration // when it is for all others; 0: nobody has
}

// note keeps that an account asks.
func (s *asked) note(a *Account, now time.Duration) {
	if s.by != a.key { // accounts come and go with connections, keys do not
		s.by, s.others = a.key, s.until
	}
	s.until = now + askedFor
}

// beside reports whether somebody else than the account has.
func (s *asked) beside(a *Account, now time.Duration) bool {
	if s.by == a.key {
		return now < s.others
	}
	return now < s.until
}

// askedBeside reports whether somebody else than the account has asked of late, for
// calls of no lower priority.
func (r *Rank) askedBeside(a *Account, priority int, now time.Duration) bool {
	for _, l := range r.levels {
		if l.priority >= priority && l.asked.beside(a, now) {
			return true
		}
	}
	return false
}

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

// turnPeriod begins a new period when it is time, for those of whom calls run or
// wait.
//
// Cost: O(accounts of which calls run or wait), once in a period.
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
	for q := range r.queues {
		q.eachFlow(func(f *flow) { p.count(f.account) })
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
	a, priority := t.account, t.lane.priority
	asked := r.askedBeside(a, priority, now)
	if !asked && r.alone() {
		return false
	}
	held, most := a.running+a.ghosts+1, r.share(a, now)
	if asked {
		most = min(most, float64(max(r.capacity-1, 1)))
	}
	if float64(held) <= most {
		return false
	}
	own, others := r.loads(a, priority, now)
	if t.method.quick(others) && !slower(held, own, others) {
		return false
	}
	room := a.roomFor(t.method, own, others, asked, now) + r.waitingBeside(a, q, priority)
	// Slots may be on endpoints that get no more calls, or pause: so neither what it
	// has nor what is free tells alone what is left.
	left := max(r.capacity-held, r.slotsFree-1+others.held)
	return left < room
}

// roomFor returns how many slots the account leaves to others who use so many, with a
// call of a method.
func (a *Account) roomFor(m *Method, own, others load, asked bool, now time.Duration) int {
	if own.slots >= own.rate*longTurn.Seconds() { // so does who is not known yet
		a.slow = now + slowFor
	}
	spare := spareRoom
	if now < a.slow || !m.known() || m.occupancy() >= longTurn || a.haunts(own, now) {
		spare = mostRoom
	}
	room := int(others.slots + spare*math.Sqrt(others.slots))
	switch {
	case others.slots > secondSlot:
		return max(room, 2)
	case asked:
		return max(room, 1)
	}
	return room
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
			others.held += l.load.held - mine.held
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

// slower reports whether a caller has had more slots than it needs for as many calls
// as end, if each took slowTurn times as long as those of others, by Little's law; or
// would have twice as many now. So has everybody whose calls have not ended yet.
func slower(held int, own, others load) bool {
	need := slowTurn * own.rate * others.slots // times others.rate
	return own.slots*others.rate > need || float64(held)*others.rate >= 2*need
}

// quick reports whether calls of a method are known to take no longer than slowTurn
// times those of others.
func (m *Method) quick(others load) bool {
	return m.known() && m.occupancy().Seconds()*others.rate <= slowTurn*others.slots
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
	return r.mayStart(t.lane) && !r.yields(t, q, now) && (l.waiting == 0 || r.offer(l, now) == nil)
}

// reconsider has the account's calls that wait be looked at again.
func (a *Account) reconsider() {
	for _, f := range a.flows {
		f.yields = false
	}
	a.reorder()
}

// reorder puts the account's flows right after what it has had has changed.
func (a *Account) reorder() {
	for _, f := range a.flows {
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

// Reclaims reports whether the lease's slot is wanted by somebody with more of a
// claim to it: a call waits whose account has less than its share of the slots, and
// that of the lease runs more calls than its own. Those that are given up already, and
// whose slots come back when their worker is through, are not among these.
func (r *Rank) Reclaims(l Lease, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.held() || r.alone() {
		return false
	}
	a, q := l.ticket.account, l.ticket.endpoint.queue
	if q == nil {
		q = r.queue
	}
	return float64(a.running-a.unheard) > r.share(a, now) && r.waitsBeside(l.ticket, q, now)
}

// Unheard notes that the call of a lease is given up, and that its slot comes back when
// its worker is through (Finish). It makes no difference to a lease that was released.
func (r *Rank) Unheard(l Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.held() && !l.ticket.unheard {
		l.ticket.unheard = true
		l.ticket.account.unheard++
	}
}

// waitsBeside reports whether a call of somebody else waits in the queue who has
// less than its share, and may have the ticket's slot. It looks at the first few who
// would be served.
func (r *Rank) waitsBeside(t *Ticket, q *queue, now time.Duration) bool {
	a := t.account
	for i := range q.lanes {
		l := &q.lanes[i]
		if !r.mayStart(l.lane) && (!t.early || i != len(r.lanes)-1) { // it does not wait for this slot
			continue
		}
		for _, h := range []*flowHeap{&l.modest, &l.greedy} {
			for _, f := range h.flows[:min(len(h.flows), mostChanged)] {
				if b := f.account; b != a && float64(b.running+b.ghosts+1) <= r.share(b, now) {
					return true
				}
			}
		}
	}
	return false
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
	for q := range r.queues {
		for i := range q.lanes {
			if q.lanes[i].wanted() {
				return true
			}
		}
	}
	return false
}
