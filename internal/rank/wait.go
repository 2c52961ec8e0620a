package rank

import "time"

// handovers measures how often a slot is handed to a call that waits: what a
// place in the queue costs.
//
// Concurrency: belongs to the rank's lock.
type handovers struct {
	last  time.Duration // the last one; or when a slot was free last, if that was later
	noted time.Duration // the last one
	mean  time.Duration // between two of them, smoothed
	count int           // seen so far, at most enough
}

// smoothing is for how many handovers the mean stands, about.
const smoothing = 64

// begin notes that until now there was a slot for whoever came.
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

// old reports whether all of them were long ago, so that they do not tell what
// a place costs now.
func (h *handovers) old(now time.Duration) bool {
	return now-h.noted >= max(halfLife, enough*h.mean)
}

// known reports whether there are enough of them to decide by.
func (h *handovers) known(now time.Duration) bool { return h.count >= enough && !h.old(now) }

// expectedWait estimates for how long a call of the account would wait that
// joined l now; 0 if that is not known.
func (r *Rank) expectedWait(l *laneQueue, a *Account, now time.Duration) time.Duration {
	if !r.handovers.known(now) {
		return 0
	}
	return r.takes(l.ahead(a) + 1)
}

// takes estimates how long it takes until so many calls of a queue have slots.
func (r *Rank) takes(places int) time.Duration {
	if r.bind != nil { // each endpoint has a queue of its own
		places *= len(r.up)
	}
	return time.Duration(places) * r.handovers.mean
}

// assess tells a flow's line what its order may consider.
func (r *Rank) assess(f *flow, now time.Duration) {
	last, s := f.line.last, &f.line.standing
	s.Time, s.Wait, s.Gap = last.time(), 0, r.handovers.mean
	if r.handovers.known(now) {
		l, weight := f.lane, f.account.terms.Weight
		s.Wait = r.takes(l.before(min(int(float64(f.waiting)*l.weights/weight), l.waiting))) + last.method.usual()
	}
	if last.method.name != "" && last.method.cut >= enough { // all are late, and so it is not learned how long they run
		s.Wait = s.Time
	}
}

// ahead estimates how many calls are served before one of the account that
// joined now: those of lanes that come first, and of each account in this lane as
// many as go with its own, this one included, by their weights.
func (l *laneQueue) ahead(a *Account) int {
	own, weights, weight := 0, l.weights, a.terms.Weight
	switch f := l.find(a); {
	case f == nil:
		weights += weight
	case !f.line.newest:
		own = f.waiting
	}
	return l.before(min(int(float64(own+1)*weights/weight)-1, l.waiting))
}

// before adds to so many calls of this lane those of lanes that come first.
func (l *laneQueue) before(calls int) int {
	for i := range l.queue.lanes {
		if other := &l.queue.lanes[i]; other.lane.priority > l.lane.priority {
			calls += other.waiting
		}
	}
	return calls
}

// Drain estimates how long it takes until everyone who waits now has a slot. It
// is what a caller is told that is refused for the length of the queue.
func (r *Rank) Drain() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.Waiting()) * r.handovers.mean
}
