package rank

import "time"

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
