package rank

import (
	"slices"
	"time"
)

// resetSlots forgets all that was learned of how many slots a worker should have. An
// adaptive limit begins again with slots, or with the number of the options if slots
// is 0.
func (e *Endpoint) resetSlots(slots int) {
	if a := e.adapt; a != nil {
		*a = newAdaptive(a.least, a.start, a.most, e.index)
		if slots > 0 {
			a.limit, a.allowed = slots, slots
		}
	}
	e.relimit()
}

// exempt gives a stream a slot outside an adaptive limit: a stream waits for its peer
// nearly all the time, and its run time tells nothing. The slots of the options bound
// such streams as well.
func (r *Rank) exempt(t *Ticket, e *Endpoint) {
	t.exempt = true
	e.exempt++
	e.relimit()
}

// slotsToStart returns how many slots a new process should begin with, by the limits that
// other endpoints have found: 0 if none has. Otherwise every process would have to find
// its limit again, and a rolling restart would lose most slots. It gets half of the
// median limit if that is above the start value, for it is new to the work.
func (r *Rank) slotsToStart(e *Endpoint) int {
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

// relimit computes how many slots may be used, and reports whether that has changed.
func (e *Endpoint) relimit() bool {
	before := e.limit
	e.limit = e.slots
	if e.adapt != nil {
		e.limit = min(e.limit, e.adapt.allowed+e.exempt)
	}
	if e.pace.octaves > 0 {
		e.limit = max(e.limit>>(e.pace.octaves-1), 1)
	}
	return e.limit != before
}

// learnSlots learns from the end of a lease how many slots an endpoint should have. The
// call is no longer in flight. expected is the mean run time of its method, 0 if that is
// not known.
func (r *Rank) learnSlots(t *Ticket, o Outcome, run, expected, now time.Duration) {
	if e := t.endpoint; e.adapt != nil && !t.exempt {
		r.adapt(e, o, run, expected, now)
		e.relimit()
	}
}

// adapt is learnSlots for an adaptive limit.
func (r *Rank) adapt(e *Endpoint, o Outcome, run, expected, now time.Duration) {
	a := e.adapt
	limit, probes := a.limit, a.probes
	if o == Lost {
		return
	}
	if o == RefusedByWorker || o == MaybeRefused {
		a.refused(e.inFlight-e.exempt, now)
	} else {
		a.finished(run, expected, e.inFlight-e.exempt+1, o, now)
	}
	switch {
	case a.limit > limit:
		r.counts.decided[raisedLimit]++
	case a.limit < limit:
		r.counts.decided[loweredLimit]++
	case a.probes != probes:
		r.counts.decided[probedLimit]++
	}
}
