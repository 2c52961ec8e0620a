package rank

import "time"

// Release ends a lease and hands the slot to the next call. It appends to into the
// notices that it made and returns the result; the caller delivers them after
// unlocking (R23).
//
// RefusedByWorker pauses the slot (R1): 1 ms, doubled for each further refusal
// of this endpoint in a row, at most 250 ms; an OK ends the row. Cancelled may
// leave a ghost on it (R5). A paused slot is free again at the next Tick after its
// pause.
// Errors: panics if the lease was released before (internal error).
func (r *Rank) Release(l Lease, o Outcome, now time.Duration, into []Notice) []Notice {
	return r.ReleaseAt(l, o, now, now, into)
}

// ReleaseAt is Release for a slot that is known to stay busy after its call: it pauses
// at least until the instant until. With NotSent the endpoint cannot be reached before
// that instant, and all its idle slots pause as well: else each of them would be tried
// in turn. An until that is not after now changes nothing.
func (r *Rank) ReleaseAt(l Lease, o Outcome, until, now time.Duration, into []Notice) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.active() {
		broken("release of a lease that is not held")
	}
	t, e := l.ticket, l.ticket.endpoint
	t.state = idle
	e.inFlight--
	t.lane.running--
	t.method.running--
	r.streams.end(t.early, l.ticket.at, now)
	r.use.released(o, l.ticket.at, now)
	busy, ghost := r.learn(l, o, now)
	if t.exempt {
		t.exempt = false
		e.exempt--
		e.relimit()
	}
	if until = max(until, busy); until > now {
		slots := 1
		if o == NotSent {
			slots = e.limit - e.busy()
		}
		p := pause{until: until, endpoint: e, slots: slots}
		if ghost {
			p.since, p.ghostOf, p.level = now, t.account, t.lane.level
		}
		r.pause(p)
	}
	r.refresh(e)
	into = r.serve(now, into)
	r.forget(t.account)
	return into
}

// learn learns from a run that has ended, and returns until when its slot stays busy,
// and whether with a ghost.
func (r *Rank) learn(l Lease, o Outcome, now time.Duration) (until time.Duration, ghost bool) {
	t, e := l.ticket, l.ticket.endpoint
	run := max(now-l.ticket.at, 0)
	had := run
	switch o {
	case OK, Faulty:
		e.refusals, e.doubts = 0, 0
		if o == OK { // the time until a failure does not tell how long calls run
			r.ran(t.method, run, now)
		}
	case RefusedByWorker, Lost:
		until = now + e.refuse()
		r.counts.decided[pausedRefusing]++
		had = 0
	case MaybeRefused:
		// Without a pause a worker that refuses at once would attract all calls.
		until = now + min(max(t.method.usual(), minPause), maxPause)
	case Cancelled:
		if t.Request.late(now) {
			t.method.cut++
		}
		t.method.observeAtLeast(run, now)
		until, ghost = r.holdGhost(l, now)
		had = max(had, until-l.ticket.at)
	case NotSent:
		r.settle(t, l.ticket.at, 0, now, false)
		return 0, false
	case Failed:
	}
	r.learnPace(e, o, t.method, run, now)
	r.learnSlots(t, o, run, t.method.expectedRun(), now)
	r.settle(t, l.ticket.at, had, now, ghost)
	return until, ghost
}
