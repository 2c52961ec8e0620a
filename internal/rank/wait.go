package rank

import "time"

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
