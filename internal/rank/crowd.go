package rank

import (
	"math"
	"time"
)

// Nobody is crowded out. While another caller has asked for a slot recently, a caller
// gets all slots but one; and beyond its share only slots that it gives back about as
// soon as others do. A caller that keeps its slots for longer (for long calls, stalled
// calls, or ghosts of cancelled ones), and a caller of which that is not known yet,
// leaves room for the slots that the others use: a slot cannot be taken back when they
// need it. See docs/decisions/084-all-but-one-slot.md.
const (
	// slowKeep is how many times longer than the others a caller may keep a slot
	// without leaving room.
	slowKeep = 4
	// spareRoom is the room for others above the mean number of slots that they use,
	// in standard deviations; mostRoom is the same for a caller that keeps slots long.
	spareRoom = 0.5
	mostRoom  = 1.5
	// A caller that keeps a slot for longKeep leaves the most room, and goes on to do so
	// for slowFor.
	longKeep = 3 * time.Second
	slowFor  = 10 * time.Second
	// secondSlot is from how many slots in use on the others are left two: callers that
	// keep one slot busy more than half of the time would mostly wait for each other.
	secondSlot = 0.5
	// askedFor is how long a caller counts as active after it has asked for a slot.
	askedFor = time.Minute
	// recentFor is how long, at least, a caller counts among those that share the
	// slots after its last call.
	recentFor = time.Second
)

// asked remembers who has asked for a slot recently.
type asked struct {
	by     string        // the key of the last account
	until  time.Duration // until when its request counts
	others time.Duration // until when the requests of all others count; 0: no other has asked
}

// note notes that an account asks.
func (s *asked) note(a *Account, now time.Duration) {
	if s.by != a.key { // accounts come and go with connections, keys do not
		s.by, s.others = a.key, s.until
	}
	s.until = now + askedFor
}

// beside reports whether an account other than a has asked.
func (s *asked) beside(a *Account, now time.Duration) bool {
	if s.by == a.key {
		return now < s.others
	}
	return now < s.until
}

// askedBeside reports whether another account has asked recently, for calls of at
// least this priority.
func (r *Rank) askedBeside(a *Account, priority int, now time.Duration) bool {
	for _, l := range r.levels {
		if l.priority >= priority && l.asked.beside(a, now) {
			return true
		}
	}
	return false
}

// recent sums up the weights of the recently active accounts, in periods of
// recentFor.
//
// Concurrency: belongs to the rank's lock.
type recent struct {
	period         int           // number of the present period, from 2 on
	ends           time.Duration // when the present period ends
	weights        float64       // of accounts with a call in this period
	lastTwoPeriods float64       // of accounts with a call in this period or the last
}

// noteCall notes that the account has a call.
func (r *Rank) noteCall(a *Account, now time.Duration) {
	if now >= r.recent.ends || a.lastPeriod != r.recent.period {
		r.noteFirstCall(a, now)
	}
}

// noteFirstCall is noteCall for the account's first call of a period.
func (r *Rank) noteFirstCall(a *Account, now time.Duration) {
	r.startPeriod(now)
	r.recent.count(a)
}

// startPeriod starts the next period when it is time, and counts every account with a
// running or waiting call in it.
//
// Cost: O(these accounts), once in a period.
func (r *Rank) startPeriod(now time.Duration) {
	p := &r.recent
	if now < p.ends {
		return
	}
	period := int(now/recentFor) + 2
	p.ends = time.Duration(period-1) * recentFor
	if p.lastTwoPeriods = 0; period == p.period+1 {
		p.lastTwoPeriods = p.weights
	}
	p.period, p.weights = period, 0
	for _, a := range r.busy {
		p.count(a)
	}
	for q := range r.queues {
		q.eachFlow(func(f *flow) { p.count(f.account) })
	}
}

func (p *recent) count(a *Account) {
	if a.lastPeriod == p.period {
		return
	}
	p.weights += a.terms.Weight
	if a.lastPeriod != p.period-1 {
		p.lastTwoPeriods += a.terms.Weight
	}
	a.lastPeriod = p.period
}

// fairShare is the account's fair number of slots among recently active accounts, at
// least 1.
func (r *Rank) fairShare(a *Account, now time.Duration) float64 {
	r.startPeriod(now)
	weights := r.recent.lastTwoPeriods
	if a.lastPeriod < r.recent.period-1 {
		weights += a.terms.Weight
	}
	return max(float64(r.capacity)*a.terms.Weight/max(weights, a.terms.Weight), 1)
}

// yields reports whether a call of the account must leave the free slots to others.
func (r *Rank) yields(t *Ticket, q *queue, now time.Duration) bool {
	a, priority := t.account, t.lane.priority
	asked := r.askedBeside(a, priority, now)
	if !asked && r.alone() {
		return false
	}
	held, most := a.running+a.ghosts+1, r.fairShare(a, now)
	if asked {
		most = min(most, float64(max(r.capacity-1, 1)))
	}
	if float64(held) <= most {
		return false
	}
	own, others := r.splitUsage(a, priority, now)
	if t.method.quick(others) && !slower(held, own, others) {
		return false
	}
	room := a.roomFor(t.method, own, others, asked, now) + r.waitingBeside(a, q, priority)
	// Slots may pause, or be on endpoints that get no more calls: so neither the slots
	// that it has nor the free ones alone tell how many are left.
	left := max(r.capacity-held, r.slotsFree-1+others.current)
	return left < room
}

// roomFor returns how many slots a call of the account and a method leaves to others,
// which use others.
func (a *Account) roomFor(m *Method, own, others usage, asked bool, now time.Duration) int {
	if own.mean >= own.rate*longKeep.Seconds() { // also true of an account that is new
		a.slow = now + slowFor
	}
	spare := spareRoom
	if now < a.slow || !m.known() || m.expectedRun() >= longKeep || a.mostlyGhosts(own, now) {
		spare = mostRoom
	}
	room := int(others.mean + spare*math.Sqrt(others.mean))
	switch {
	case others.mean > secondSlot:
		return max(room, 2)
	case asked:
		return max(room, 1)
	}
	return room
}

// splitUsage returns the usage of the account and that of all others, whose calls of a
// lower priority do not count.
func (r *Rank) splitUsage(a *Account, priority int, now time.Duration) (own, others usage) {
	for i, l := range r.levels {
		mine := &a.shares[i].usage
		mine.pass(now)
		l.usage.pass(now)
		own.mean += mine.mean
		own.rate += mine.rate
		if l.priority >= priority {
			others.current += l.usage.current - mine.current
			others.mean += max(l.usage.mean-mine.mean, 0)
			others.rate += max(l.usage.rate-mine.rate, 0)
		}
	}
	return own, others
}

// mostlyGhosts reports whether most of the slots that the account has are ghosts.
func (a *Account) mostlyGhosts(own usage, now time.Duration) bool {
	a.ghostUsage.pass(now)
	return a.ghostUsage.mean > own.mean/2
}

// slower reports whether a caller has had more slots than it would need by Little's law
// if each of its calls took slowKeep times as long as those of others, or would now have
// twice as many. Both are true of a caller whose first calls have not ended yet.
func slower(held int, own, others usage) bool {
	need := slowKeep * own.rate * others.mean // times others.rate
	return own.mean*others.rate > need || float64(held)*others.rate >= 2*need
}

// quick reports whether calls of a method are known to take no longer than slowKeep
// times those of others.
func (m *Method) quick(others usage) bool {
	return m.known() && m.expectedRun().Seconds()*others.rate <= slowKeep*others.mean
}

// waitingBeside counts the waiting calls of others that may have a slot.
func (r *Rank) waitingBeside(a *Account, q *queue, priority int) (waiting int) {
	for i := range q.lanes {
		if l := &q.lanes[i]; l.lane.priority >= priority && l.waiting > 0 && r.mayStart(l.lane) {
			waiting += l.waiting - l.waitingOf(a)
		}
	}
	return waiting
}

// mayStartNow reports whether a new call may take a free slot before all waiting calls
// of the queue. By the invariant none of those may have the slot: the calls of its lane
// wait for the same reason, unless they only leave the slot to others.
func (r *Rank) mayStartNow(t *Ticket, q *queue, now time.Duration) bool {
	l := &q.lanes[t.lane.index]
	return r.mayStart(t.lane) && !r.yields(t, q, now) && (l.waiting == 0 || r.offer(l, now) == nil)
}

// reconsider lets the account's waiting calls ask for free slots again.
func (a *Account) reconsider() {
	for _, f := range a.flows {
		f.yields = false
	}
	a.reorder()
}

// reorder restores the order of the account's flows after its slot time has changed.
func (a *Account) reorder() {
	for _, f := range a.flows {
		f.lane.moved(f)
	}
}

// offer returns the flow of a lane that is served next; nil if all waiting calls leave
// the free slots to others. At least one call waits.
//
// Flows that leave the slots are behind all others until something changes for them;
// the look that comes ten times a second is such a change.
func (r *Rank) offer(l *laneQueue, now time.Duration) *flow {
	for {
		f := l.next(r.capacity, now)
		switch {
		case !r.yields(f.list.first, l.queue, now):
			if f.yields { // the caller may not use the slot
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

// Reclaims reports whether another account has more of a claim to the lease's slot: a
// call waits whose account has less than its share of the slots, and the account of the
// lease runs more calls than its share. Calls that are given up already (Unheard) do not
// count: their slots come back when the worker has finished.
func (r *Rank) Reclaims(l Lease, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.active() || r.alone() {
		return false
	}
	a, q := l.ticket.account, l.ticket.endpoint.queue
	if q == nil {
		q = r.queue
	}
	return float64(a.running-a.unheard) > r.fairShare(a, now) && r.waitsBeside(l.ticket, q, now)
}

// Unheard notes that the call of a lease is given up, and that its slot comes back when
// the worker has finished (Finish). A lease that was released does not change.
func (r *Rank) Unheard(l Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.active() && !l.ticket.unheard {
		l.ticket.unheard = true
		l.ticket.account.unheard++
	}
}

// waitsBeside reports whether a call waits that may have the ticket's slot and whose
// account has less than its share. It looks at the first few flows of each lane.
func (r *Rank) waitsBeside(t *Ticket, q *queue, now time.Duration) bool {
	a := t.account
	for i := range q.lanes {
		l := &q.lanes[i]
		if !r.mayStart(l.lane) && (!t.early || i != len(r.lanes)-1) { // its calls do not wait for this slot
			continue
		}
		for _, h := range []*flowHeap{&l.modest, &l.greedy} {
			for _, f := range h.flows[:min(len(h.flows), mostChanged)] {
				if b := f.account; b != a && float64(b.running+b.ghosts+1) <= r.fairShare(b, now) {
					return true
				}
			}
		}
	}
	return false
}

// Wanted reports whether a call waits because no slot is free, and not only because it
// leaves the free slots to others. It costs O(lanes) under the lock, for each endpoint
// with ByHash.
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
