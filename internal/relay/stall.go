package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

const (
	// stallEvery is the time between two looks at all calls: a stalled call ends so much
	// late.
	stallEvery = 250 * time.Millisecond
	// reclaimLooks is after how many looks a stalled call loses its slot to a caller with
	// more of a claim to it.
	reclaimLooks = 4
	// fewLooks divides the time for unread answers while the budget is exceeded.
	fewLooks = 4
)

// stallWatch ends calls of one shard whose callers hold slots and do nothing with them while
// others wait (R9): after Options.StallTimeout, or after about a second if the caller has
// more than its share of the slots and a caller with less waits.
//
// A call only marks where its bytes move. While calls wait in the rank, the watch looks at
// those with slots, four times a second. Time in which no call waits does not count, so that
// the first call that waits a moment does not end a quiet stream. In the same way it ends
// calls without a slot whose unread answers take memory that others need.
//
// Concurrency: guarded by the lock of its shard.
type stallWatch struct {
	st      *shardState
	timer   shard.Timer
	after   time.Duration // StallTimeout, 0: never
	stalled []failer      // scratch
	idle    []*call       // scratch: calls that may lose their slots
}

// stall counts the looks since the caller last moved a byte, while it was the caller's turn
// and others waited: all of them, and those with a waiting caller that has more of a claim
// to the slot.
type stall struct {
	looks  uint32
	wanted uint8
}

// failer is a call or an exchange.
type failer interface {
	fail(why ending, now time.Duration)
}

func newStallWatch(st *shardState, after time.Duration) *stallWatch {
	w := &stallWatch{st: st, after: after}
	w.timer.Owner = w
	return w
}

// wind sets the timer for the next look.
func (w *stallWatch) wind(now time.Duration) {
	if w.after > 0 && !w.timer.Set() {
		w.st.SetTimer(&w.timer, now+stallEvery)
	}
}

// Expired implements shard.Expirer.
func (w *stallWatch) Expired(_ *shard.Timer, now time.Duration) {
	if w.st.calls > 0 {
		w.wind(now)
	}
	if w.st.relay.rank.Wanted() {
		for _, u := range w.st.upstreams {
			for _, uc := range u.conns {
				uc.link.Conn.Each(w.lookAtSlot)
			}
		}
	}
	if w.st.relay.crowded() {
		for cc := range w.st.callers {
			cc.link.Conn.Each(w.lookAtAnswer)
		}
	}
	for i, c := range w.stalled {
		c.fail(endedStalled, now)
		w.stalled[i] = nil
	}
	w.stalled = w.stalled[:0]
	w.reclaim(now)
}

// reclaim takes slots from callers above their share, one by one until they are at it.
func (w *stallWatch) reclaim(now time.Duration) {
	for i, c := range w.idle {
		w.idle[i] = nil
		if !w.st.relay.rank.Reclaims(c.main.lease, now) {
			continue
		}
		if c.idle.wanted++; c.idle.wanted >= reclaimLooks {
			c.fail(endedReclaimed, now)
		}
	}
	w.idle = w.idle[:0]
}

// crowded reports whether unread answers begin to keep other answers from being absorbed.
func (r *Relay) crowded() bool {
	return r.budget.Pressed() || r.absorbed.Load() > r.bufferTotal()/4
}

// lookAtSlot looks at a call by its stream to a worker.
func (w *stallWatch) lookAtSlot(s *h2.Stream) {
	a := s.Owner.(*attempt)
	c := a.call
	switch {
	case a != c.main: // the hedge of the same call
	case !c.awaitsCaller():
		c.idle = stall{}
	default:
		w.idle = append(w.idle, c)
		w.lookAt(c, &c.idle.looks, w.looks(1))
	}
}

// lookAtAnswer looks at a call by its stream to a caller. An unread answer holds no slot, but
// memory; so does an exchange that waits for its caller.
func (w *stallWatch) lookAtAnswer(s *h2.Stream) {
	switch o := s.Owner.(type) {
	case *call:
		if o.state.left() && o.respSent < len(o.resp) {
			w.lookAt(o, &o.idle.looks, w.answerLooks())
		}
	case *Exchange:
		if o.awaitsCaller() {
			w.lookAt(o, &o.idle, w.answerLooks())
		}
	}
}

// looks returns the number of looks in the given part of StallTimeout.
func (w *stallWatch) looks(part time.Duration) uint32 {
	return uint32(w.after / part / stallEvery)
}

// answerLooks returns after how many looks an unread answer is given up.
func (w *stallWatch) answerLooks() uint32 {
	if w.st.relay.budget.Exceeded() {
		return w.looks(fewLooks)
	}
	return w.looks(1)
}

func (w *stallWatch) lookAt(f failer, idle *uint32, looks uint32) {
	if *idle < looks {
		*idle++
		return
	}
	w.stalled = append(w.stalled, f)
}

// awaitsCaller reports whether a call with a slot waits for its caller: bytes of the answer
// are unread here or in a LocalCall, or the request is not complete and none of it waits for
// the worker. The latter is also true of a quiet conversation whose worker is thinking: the
// relay cannot see that. A caller that has ended its request and reads its answer does its
// part, however long the worker is silent.
func (c *call) awaitsCaller() bool {
	switch {
	case c.state != callRunning || !c.main.lease.Valid():
		return false
	case c.respSent < len(c.resp), c.localCall().unread():
		return true
	default:
		return !c.reqEnd && c.main.reqSent == len(c.req)
	}
}
