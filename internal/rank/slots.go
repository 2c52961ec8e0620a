package rank

import (
	"slices"
	"time"
)

// Tick frees the slots whose pause has ended at now and hands them out. It appends to
// into the notices that it made, for the caller to deliver, and returns the instant of
// the next Tick; 0 means when Wake says so.
//
// After a late Tick slots have been unused for longer; nothing else goes wrong.
func (r *Rank) Tick(now time.Duration, into []Notice) ([]Notice, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pauses) > 0 && r.pauses[0].until <= now {
		p := r.pauses.pop()
		e := p.endpoint
		e.paused -= p.slots
		if p.ghostOf != nil { // its handler may still run
			e.ghosts--
			e.doubts++
			r.clearGhost(p, now)
		}
		r.refresh(e)
	}
	if r.again <= now {
		r.again = 0
	}
	into = r.serve(now, into)
	next := r.again
	if len(r.pauses) > 0 && (next == 0 || r.pauses[0].until < next) {
		next = r.pauses[0].until
	}
	return into, next
}

// wakeAt asks for a Tick at an instant from which a call may have one of the slots that
// are free now.
func (r *Rank) wakeAt(at time.Duration) {
	if r.again == 0 || at < r.again {
		r.again = at
		r.poke()
	}
}

// Wake returns the channel on which the rank asks for a Tick before the instant that
// the last Tick returned. It carries at most one token and is never closed; one
// goroutine of the caller reads it:
//
//	for {
//		notices, next = r.Tick(now(), notices[:0])
//		// deliver notices, then wait for next, Wake or the end
//	}
func (r *Rank) Wake() <-chan struct{} { return r.wake }

// pause takes slots of an endpoint out of use until an instant, unless it is
// removed.
func (r *Rank) pause(p pause) {
	e := p.endpoint
	if e.removed || p.slots <= 0 {
		return
	}
	e.paused += p.slots
	if p.ghostOf != nil {
		e.ghosts++
		p.ghostOf.ghosts++
		p.level.addSlots(p.ghostOf, 1, p.since)
		p.ghostOf.ghostUsage.change(1, p.since)
		r.use.begin(p.since)
	}
	earlier := len(r.pauses) > 0 && r.pauses[0].until <= p.until
	r.pauses.push(p)
	if !earlier { // else the Tick for an earlier pause will see this one
		r.poke()
	}
}

// poke asks for a Tick.
func (r *Rank) poke() {
	select {
	case r.wake <- struct{}{}:
	default: // the token is there already
	}
}

// unpause forgets all pauses of e.
func (r *Rank) unpause(e *Endpoint, now time.Duration) {
	if e.paused == 0 {
		return
	}
	e.paused, e.ghosts = 0, 0
	r.pauses.drop(e, func(p pause) { r.clearGhost(p, now) })
}

// EndPauses frees the paused slots of an endpoint, ghosts included, because its process
// ends and takes its handlers with it. It appends to into the notices that it made, for
// the caller to deliver.
func (r *Rank) EndPauses(e *Endpoint, now time.Duration, into []Notice) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unpause(e, now)
	r.refresh(e)
	return r.serve(now, into)
}

// clearGhost ends the ghost of a pause, if the pause has one.
func (r *Rank) clearGhost(p pause, now time.Duration) {
	if p.ghostOf != nil {
		r.use.end(p.since, now)
		p.ghostOf.ghosts--
		p.level.ended(p.ghostOf, now)
		p.ghostOf.ghostUsage.change(-1, now)
		p.ghostOf.reconsider()
		r.forget(p.ghostOf)
	}
}

// refresh counts the slots of e, and adds it to the list of endpoints with a free slot
// or takes it out. It is called after every change of a field that open reads.
func (r *Rank) refresh(e *Endpoint) {
	usable, free := 0, 0
	if e.up() {
		usable, free = e.limit, max(e.limit-e.busy(), 0)
	}
	r.capacity += usable - e.usable
	r.slotsFree += free - e.free
	e.usable, e.free = usable, free
	open, listed := free > 0, e.freeAt >= 0
	switch {
	case open && !listed:
		e.freeAt = len(r.free)
		r.free = append(r.free, e)
	case !open && listed:
		last := len(r.free) - 1
		r.swapFree(e.freeAt, last)
		r.free[last] = nil
		r.free = r.free[:last]
		e.freeAt = -1
	}
}

func (r *Rank) swapFree(i, j int) {
	r.free[i], r.free[j] = r.free[j], r.free[i]
	r.free[i].freeAt, r.free[j].freeAt = i, j
}

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
