package relay

import "time"

// farewell bounds the wait for callers to take their last bytes.
const farewell = 1500 * time.Millisecond

// StopServing has Health/Check and readiness say no from now on, unless the
// listeners were released. Everything else goes on.
func (r *Relay) StopServing() {
	r.mu.Lock()
	r.stopping = !r.released
	r.mu.Unlock()
	r.checkServing()
}

// Drain ends the relay in good order (R17): no new connections, GOAWAY in two
// steps, calls in flight and queued finish within timeout, what is left is
// answered UNAVAILABLE, connections are flushed, half-closed, closed. hurry,
// when closed, skips the wait for calls. It returns how many were cut: answered so
// because they had not ended by then.
//
// Callers that read get what their workers have answered, up to the end of a
// message, for a second. So long have guests that were taken over to say goodbye.
//
// It takes at most timeout plus three seconds, and does not end the relay's
// goroutines: Close does.
func (r *Relay) Drain(timeout time.Duration, hurry <-chan struct{}) (cut int) {
	r.StopServing()
	r.door.Drain()
	r.each(func(st *stand) {
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
	r.each((*stand).answerRest)
	r.await(messageTime, nil, func() bool { return r.allAnswered() && r.takenGuests() == 0 })
	r.each((*stand).endRest)
	r.await(farewell, nil, r.allGone)
	return r.endedBy(endedShutdown) - before
}

// endedBy counts the calls that Cabrank has ended for a reason.
func (r *Relay) endedBy(why ending) (n int) {
	r.each(func(st *stand) { n += int(st.stats.refused[why]) })
	return n
}

// await waits until done says so; it is asked anew at every event.
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

// allLeft reports whether every connection has had its final GOAWAY, so that
// no further call can arrive, and every guest has gone, with those who call in this
// process for guests.
func (r *Relay) allLeft() bool {
	all := true
	r.each(func(st *stand) {
		all = all && len(st.guests) == 0
		for cc := range st.callers {
			all = all && (cc.finalled || cc.local != nil)
		}
	})
	return all
}

// takenGuests is how many connections somebody has who is to end them himself.
func (r *Relay) takenGuests() (n int) {
	r.each(func(st *stand) { n += st.takenGuests })
	return n
}

func (r *Relay) allGone() bool {
	left := 0
	r.each(func(st *stand) { left += len(st.callers) })
	return left == 0
}

// allAnswered reports whether every caller has all that it will get.
func (r *Relay) allAnswered() bool {
	left := 0
	r.each(func(st *stand) {
		for cc := range st.callers {
			left += cc.link.Conn.Streams()
		}
	})
	return left == 0
}

// answerRest answers the calls that are left. Their connections end with them.
func (st *stand) answerRest() {
	now := st.Now()
	for cc := range st.callers {
		cc.finalGoAway()
		for _, o := range cc.owners() {
			o.drained(now)
		}
	}
}

// endRest ends the connections that are left, and tells their callers what can be
// told without their reading.
func (st *stand) endRest() {
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
	if !c.respEnd { // else the caller has only to take it
		c.endWhole(endedShutdown, now)
	}
}

// cutOff implements owner.
func (c *call) cutOff(now time.Duration) {
	c.dropAnswer()
	c.fail(endedShutdown, now)
}
