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
	ended := func(st *shardState) int { return int(st.tally.refused[endedShutdown]) }
	before := r.sum(ended)
	if left := r.running(); left > 0 {
		r.settings().Log.Warn("calls are left; answering them", "calls", left, "answer", answerOf(endedShutdown).message)
	}
	r.closing.Store(true)
	r.each((*shardState).answerRest)
	r.await(messageTime, nil, func() bool { return r.sum((*shardState).unanswered) == 0 })
	r.each((*shardState).endRest)
	r.await(flushTime, nil, func() bool { return r.sum(func(st *shardState) int { return len(st.callers) }) == 0 })
	return r.sum(ended) - before
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

// unanswered returns how many streams callers have open, with the connections that other code
// has taken over and has to end.
func (st *shardState) unanswered() int {
	n := st.hijackedGuests
	for cc := range st.callers {
		n += cc.link.Conn.Streams()
	}
	return n
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
