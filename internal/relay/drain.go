package relay

import "time"

// flushTime bounds the wait for callers to take their last bytes.
const flushTime = 1500 * time.Millisecond

// StopServing makes Health/Check and readiness say no from now on, unless the listeners
// were released. Calls are served as before.
func (r *Relay) StopServing() {
	r.mu.Lock()
	r.stopping = !r.released
	r.mu.Unlock()
	r.checkServing()
}

// Drain ends the relay in good order (R17): it takes no new connections, sends GOAWAY in
// two steps, lets running and queued calls finish within timeout, answers the rest
// UNAVAILABLE, and flushes, half-closes and closes connections. Closing hurry skips the
// wait for calls. Drain returns how many calls it answered UNAVAILABLE.
//
// For a second more, callers that read get what their workers have answered, up to the
// end of a message, and hijacked guests may end.
//
// It takes at most timeout plus three seconds, and does not end the relay's
// goroutines: Close does.
func (r *Relay) Drain(timeout time.Duration, hurry <-chan struct{}) (cut int) {
	r.StopServing()
	r.door.Drain()
	r.each(func(st *shardState) {
		st.draining = true
		for cc := range st.callers {
			cc.leave()
		}
		for g := range st.guests {
			g.leave()
		}
	})
	r.await(timeout, hurry, func() bool { return r.allLeft() && r.running() == 0 })
	before := r.endedBy(endedShutdown)
	if left := r.running(); left > 0 {
		r.settings().Log.Warn("calls are left; answering them", "calls", left, "answer", answerOf(endedShutdown).message)
	}
	r.closing.Store(true)
	r.each((*shardState).answerRest)
	r.await(messageTime, nil, func() bool { return r.allAnswered() && r.hijackedGuests() == 0 })
	r.each((*shardState).endRest)
	r.await(flushTime, nil, r.allGone)
	return r.endedBy(endedShutdown) - before
}

// endedBy returns how many calls Cabrank has ended for a reason.
func (r *Relay) endedBy(why ending) (n int) {
	r.each(func(st *shardState) { n += int(st.tally.refused[why]) })
	return n
}

// await waits until done returns true. It asks at every event.
func (r *Relay) await(timeout time.Duration, hurry <-chan struct{}, done func() bool) {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-limit.C:
			return
		case <-hurry:
			return
		case <-r.idle:
		case <-look.C:
		}
	}
}

// allLeft reports whether no further call can arrive: every connection has had its final
// GOAWAY, and every guest has gone with the callers in this process that act for it.
func (r *Relay) allLeft() bool {
	all := true
	r.each(func(st *shardState) {
		all = all && len(st.guests) == 0
		for cc := range st.callers {
			all = all && (cc.finalled || cc.local != nil)
		}
	})
	return all
}

// hijackedGuests returns how many connections other code has taken over and has to end.
func (r *Relay) hijackedGuests() (n int) {
	r.each(func(st *shardState) { n += st.hijackedGuests })
	return n
}

func (r *Relay) allGone() bool {
	left := 0
	r.each(func(st *shardState) { left += len(st.callers) })
	return left == 0
}

// allAnswered reports whether no caller has an open stream.
func (r *Relay) allAnswered() bool {
	left := 0
	r.each(func(st *shardState) {
		for cc := range st.callers {
			left += cc.link.Conn.Streams()
		}
	})
	return left == 0
}

// answerRest answers the remaining calls. Their connections end with them.
func (st *shardState) answerRest() {
	now := st.Now()
	for cc := range st.callers {
		cc.finalGoAway()
		for _, o := range cc.owners() {
			o.drained(now)
		}
	}
}

// endRest ends the remaining connections. It sends their callers what fits without their
// reading.
func (st *shardState) endRest() {
	st.endGuests()
	now := st.Now()
	for cc := range st.callers {
		for _, o := range cc.owners() {
			o.cutOff(now)
		}
		cc.link.Finish(errDrained)
	}
}

// drained implements owner.
func (c *call) drained(now time.Duration) {
	if !c.respEnd { // otherwise the caller has only to read it
		c.endAfterMessage(endedShutdown, now)
	}
}

// cutOff implements owner.
func (c *call) cutOff(now time.Duration) {
	c.dropAnswer()
	c.fail(endedShutdown, now)
}
