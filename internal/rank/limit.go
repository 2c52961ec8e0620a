package rank

import "time"

// renew forgets all that was learned of how many slots a worker has.
func (e *Endpoint) renew() {
	e.shrink = newShrink(e.slots)
	if a := e.adapt; a != nil {
		e.shrink.prompt = true
		*a = newAdaptive(a.least, a.start, a.most, e.index)
	}
	e.relimit()
}

// relimit works out how many slots may be used, and reports whether that has
// changed.
func (e *Endpoint) relimit() bool {
	before := e.limit
	e.limit = e.shrink.left
	if e.adapt != nil {
		e.limit = min(e.limit, e.adapt.allowed)
	}
	if e.pace.octaves > 0 {
		e.limit = max(e.limit>>(e.pace.octaves-1), 1)
	}
	return e.limit != before
}

// learnSlots takes what a lease's end tells of how many slots an endpoint should
// have. It is no longer counted as in flight. expected is the mean run time of
// its method, 0 if not known.
func (r *Rank) learnSlots(e *Endpoint, o Outcome, run, expected, now time.Duration) {
	left := e.shrink.left
	switch {
	case o != RefusedByWorker:
		e.shrink.released(now)
	case e.refuses:
		// Ghosts and those that were given up may well have their threads.
		e.shrink.refused(e.inFlight+e.ghosts+e.doubts, now)
	}
	if e.adapt != nil {
		r.adapt(e, o, run, expected, now)
	}
	e.relimit()
	switch {
	case e.shrink.left < left:
		r.counts.decided[tookSlots]++
	case e.shrink.left > left:
		r.counts.decided[gaveSlotBack]++
	default:
		return
	}
	r.slotChanges.Add(1)
	r.poke()
}

// adapt is learnSlots for slots that follow the measured run times.
func (r *Rank) adapt(e *Endpoint, o Outcome, run, expected, now time.Duration) {
	a := e.adapt
	limit, probes := a.limit, a.turn
	if o == RefusedByWorker {
		a.refused(e.inFlight, now)
	} else {
		a.finished(run, expected, e.inFlight+1, o, now)
	}
	switch {
	case a.limit > limit:
		r.counts.decided[raisedLimit]++
	case a.limit < limit:
		r.counts.decided[loweredLimit]++
	case a.turn != probes:
		r.counts.decided[probedLimit]++
	}
}
