package rank

import (
	"time"
)

// position is the end of a list at which a ticket joins.
type position uint8

const (
	// tail is behind everyone else.
	tail position = iota
	// head is before all calls that have not had a slot yet.
	head
)

// waitList holds the waiting tickets of one account in one lane. Calls that were put
// back (R1) come before all others and among themselves in the order of arrival, so
// that several refusals at once do not reverse the order.
//
// Shape: a list of tickets linked through themselves, so that it needs no memory
// of its own and a ticket leaves from the middle in O(1). The zero value is
// empty.
// Cost: O(1); a join at the head passes the older calls that were put back, at
// most one for each slot.
type waitList struct {
	first, last *Ticket
	state       OrderState // what the order considers
	newest      bool       // the newest is served first
}

func (l *waitList) join(t *Ticket, at position) {
	t.position = at
	var before *Ticket // the ticket that t comes before; nil is the tail
	if at == head {
		before = l.first
		for before != nil && before.position == head && before.Request.Arrived <= t.Request.Arrived {
			before = before.next
		}
	}
	l.insert(t, before)
}

// sortIn moves a ticket that has waited in another lane before tickets that came later.
func (l *waitList) sortIn(t *Ticket) {
	var before *Ticket
	for p := t.prev; p != nil && p.position == tail && p.Request.Arrived > t.Request.Arrived; p = p.prev {
		before = p
	}
	if before != nil {
		l.remove(t)
		l.insert(t, before)
	}
}

// next returns the ticket that is served now; the list is not empty. Calls that were put
// back come first in any case: their turn had come already.
func (l *waitList) next(order Order, now time.Duration) *Ticket {
	l.newest = order(&l.state, now)
	if l.newest && l.first.position != head {
		return l.last
	}
	return l.first
}

// toDrop returns the ticket that is dropped if one has to be: the newest, which has
// waited least, or under overload the oldest, which has the least time left. It is nil
// if all were put back (R1).
func (l *waitList) toDrop() *Ticket {
	switch {
	case l.last.position == head:
		return nil
	case l.newest && l.first.position != head:
		return l.first
	}
	return l.last
}

func (l *waitList) remove(t *Ticket) {
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.next, t.prev = nil, nil
	if l.first == nil {
		l.state, l.newest = OrderState{}, false
	}
}

// insert links t in front of before, or at the tail if before is nil.
func (l *waitList) insert(t, before *Ticket) {
	t.next = before
	if before == nil {
		t.prev, l.last = l.last, t
	} else {
		t.prev, before.prev = before.prev, t
	}
	if t.prev == nil {
		l.first = t
	} else {
		t.prev.next = t
	}
}

// handovers measures how often a slot is handed to a waiting call: the time that each
// call ahead in the queue costs.
//
// Concurrency: belongs to the rank's lock.
type handovers struct {
	last  time.Duration // the last handover, or the last time a slot was free, if that was later
	noted time.Duration // the last handover
	mean  time.Duration // between two handovers, smoothed
	count int           // handovers so far, at most enough
}

// smoothing is the number of handovers behind the mean.
const smoothing = 64

// begin notes that until now a slot was free for a new call.
func (h *handovers) begin(now time.Duration) { h.last = max(h.last, now) }

// note notes that a slot was handed over.
func (h *handovers) note(now time.Duration) {
	if h.old(now) {
		h.count, h.mean = 0, 0
	}
	gap := max(now-h.last, 0)
	h.last, h.noted = max(h.last, now), max(h.noted, now)
	if h.count < enough {
		h.count++
		h.mean += (gap - h.mean) / time.Duration(h.count)
		return
	}
	h.mean += (gap - h.mean) / smoothing
}

// old reports whether all handovers were too long ago to tell about waits now.
func (h *handovers) old(now time.Duration) bool {
	return now-h.noted >= max(halfLife, enough*h.mean)
}

// known reports whether enough handovers were seen to decide by them.
func (h *handovers) known(now time.Duration) bool { return h.count >= enough && !h.old(now) }

// expectedWait estimates the wait of a call of the account that joins l now; 0 if that
// is not known.
func (r *Rank) expectedWait(l *laneQueue, a *Account, now time.Duration) time.Duration {
	if !r.handovers.known(now) {
		return 0
	}
	return r.timeFor(l.callsAhead(a) + 1)
}

// timeFor estimates the time until so many calls of a queue have had slots.
func (r *Rank) timeFor(calls int) time.Duration {
	if r.byHash { // each endpoint has a queue of its own
		calls *= len(r.up)
	}
	return time.Duration(calls) * r.handovers.mean
}

// assess updates what the order may consider of a flow's list.
func (r *Rank) assess(f *flow, now time.Duration) {
	last, s := f.list.last, &f.list.state
	s.Time, s.Wait, s.Gap = last.time(), 0, r.handovers.mean
	if r.handovers.known(now) {
		l, weight := f.lane, f.account.terms.Weight
		s.Wait = r.timeFor(l.withHigherLanes(min(int(float64(f.waiting)*l.weights/weight), l.waiting))) + last.method.usual()
	}
	if last.method.name != "" && last.method.cut >= enough { // all are cut, and so their run time is not known
		s.Wait = s.Time
	}
}

// callsAhead estimates how many calls are served before a call of the account that joins
// now: the calls of lanes that come first, and the calls that the other accounts of this
// lane may have by their weights before it.
func (l *laneQueue) callsAhead(a *Account) int {
	own, weights, weight := 0, l.weights, a.terms.Weight
	switch f := l.find(a); {
	case f == nil:
		weights += weight
	case !f.list.newest:
		own = f.waiting
	}
	return l.withHigherLanes(min(int(float64(own+1)*weights/weight)-1, l.waiting))
}

// withHigherLanes returns calls, a number of calls of this lane, plus those of lanes that come
// first.
func (l *laneQueue) withHigherLanes(calls int) int {
	for i := range l.queue.lanes {
		if other := &l.queue.lanes[i]; other.lane.priority > l.lane.priority {
			calls += other.waiting
		}
	}
	return calls
}

// QueueTime estimates the time until all calls that wait now have a slot. A caller that is
// refused because of the full queue is told this time.
func (r *Rank) QueueTime() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.Waiting()) * r.handovers.mean
}
