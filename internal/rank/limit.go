package rank

import (
	"slices"
	"time"
)

// renew forgets all that was learned of how many slots a worker has. With slots
// that follow the measured run times it begins with so many of them, or as the
// options have it if that is 0.
func (e *Endpoint) renew(slots int) {
	if a := e.adapt; a != nil {
		*a = newAdaptive(a.least, a.start, a.most, e.index)
		if slots > 0 {
			a.limit, a.allowed = slots, slots
		}
	}
	e.relimit()
}

// setAside gives a stream at a worker that takes any number of calls a slot beside
// those that follow the run times: it waits for others nearly all the time, and tells
// nothing by ending. They are bounded by all slots that the worker may have.
func (r *Rank) setAside(t *Ticket, e *Endpoint) {
	t.aside = true
	e.aside++
	e.relimit()
}

// found returns how many slots a worker should begin with, by what was found of
// others that serve: 0 if nothing was. A process that takes over a place would
// else have to find out again what is known, and a roll be a loss of most slots.
// It gets half as many as the one in the middle if that is more than where they
// began, for it is new to the work.
func (r *Rank) found(e *Endpoint) int {
	if e.adapt == nil {
		return 0
	}
	r.limits = r.limits[:0]
	for _, x := range r.up {
		if a := x.adapt; a != nil && a.calm != 0 {
			r.limits = append(r.limits, a.limit)
		}
	}
	if len(r.limits) == 0 {
		return 0
	}
	slices.Sort(r.limits)
	usual, a := r.limits[(len(r.limits)-1)/2], e.adapt
	if usual > a.start {
		usual = max(usual/2, a.start)
	}
	return min(max(usual, a.least), a.most)
}

// relimit works out how many slots may be used, and reports whether that has
// changed.
func (e *Endpoint) relimit() bool {
	before := e.limit
	e.limit = e.slots
	if e.adapt != nil {
		e.limit = min(e.limit, e.adapt.allowed+e.aside)
	}
	if e.pace.octaves > 0 {
		e.limit = max(e.limit>>(e.pace.octaves-1), 1)
	}
	return e.limit != before
}

// learnSlots takes what a lease's end tells of how many slots an endpoint should
// have. It is no longer counted as in flight. expected is the mean run time of
// its method, 0 if not known.
func (r *Rank) learnSlots(t *Ticket, o Outcome, run, expected, now time.Duration) {
	if e := t.endpoint; e.adapt != nil && !t.aside {
		r.adapt(e, o, run, expected, now)
		e.relimit()
	}
}

// adapt is learnSlots for slots that follow the measured run times.
func (r *Rank) adapt(e *Endpoint, o Outcome, run, expected, now time.Duration) {
	a := e.adapt
	limit, probes := a.limit, a.turn
	if o == Lost {
		return
	}
	if o == RefusedByWorker || o == MaybeRefused {
		a.refused(e.inFlight-e.aside, now)
	} else {
		a.finished(run, expected, e.inFlight-e.aside+1, o, now)
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
