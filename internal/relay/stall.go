package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

const (
	// stallEvery is how often calls are looked at, at most: a stalled one is ended so
	// much late.
	stallEvery = 250 * time.Millisecond
	// reclaimLooks is how often a call is found stalled whose slot somebody waits for
	// who has more of a claim to it, until it loses it.
	reclaimLooks = 4
	// fewLooks is by what the time is divided that an answer may lie here while the
	// budget is exceeded.
	fewLooks = 4
)

// stallWatch ends the calls of one shard whose callers hold slots and do nothing
// with them while others wait (R9): after the time that Options have, or about a
// second if their callers have more than their share of the slots, and somebody
// waits who has less.
//
// It costs a call nothing but a mark where its bytes move. Only while calls wait
// in the rank are those that have a slot looked at, four times a second; the time
// in which nobody waits counts for nothing, so that a quiet stream is not cut off
// for the first call that has to wait a moment. In the same way it ends calls whose
// answers lie here, untaken and without a slot, when room for others gets short.
//
// Concurrency: guarded by the lock of its shard.
type stallWatch struct {
	st      *shardState
	timer   shard.Timer
	after   time.Duration // 0: never
	stalled []failer      // scratch
	idle    []*call       // scratch: those that may lose their slots
}

// stall counts the looks since the caller of a call has moved a byte: those at which
// it was its turn while somebody waited, and those at which that was somebody with
// more of a claim to the slot.
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

// wind has the watch look again, while there are calls.
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

// reclaim takes slots from those who have more than their share, one after the other:
// each brings its caller nearer to it.
func (w *stallWatch) reclaim(now time.Duration) {
	for i, c := range w.idle {
		w.idle[i] = nil
		if !w.st.relay.rank.Reclaims(c.lease, now) {
			continue
		}
		if c.idle.wanted++; c.idle.wanted >= reclaimLooks {
			c.fail(endedReclaimed, now)
		}
	}
	w.idle = w.idle[:0]
}

// crowded reports whether answers that nobody takes begin to keep others from
// being read ahead (absorb).
func (r *Relay) crowded() bool {
	return r.budget.Pressed() || r.absorbed.Load() > r.bufferTotal()/4
}

// lookAtSlot looks at a call by its stream to a worker.
func (w *stallWatch) lookAtSlot(s *h2.Stream) {
	a := s.Owner.(*attempt)
	c := a.call
	switch {
	case a != &c.attempt: // a second one of the same call
	case !c.awaitsCaller():
		c.idle = stall{}
	default:
		w.idle = append(w.idle, c)
		w.lookAt(c, &c.idle.looks, w.looks(1))
	}
}

// lookAtAnswer looks at a call by its stream to a caller. It holds no slot any more,
// but memory, until the caller takes what its worker has left here. So does an
// exchange whose handler waits for its caller.
func (w *stallWatch) lookAtAnswer(s *h2.Stream) {
	switch o := s.Owner.(type) {
	case *call:
		if o.state == callOver && o.respSent < len(o.resp) {
			w.lookAt(o, &o.idle.looks, w.answerLooks())
		}
	case *Exchange:
		if o.awaitsCaller() {
			w.lookAt(o, &o.idle, w.answerLooks())
		}
	}
}

// looks is how often a call is found stalled in a part of the time.
func (w *stallWatch) looks(part time.Duration) uint32 {
	return uint32(w.after / part / stallEvery)
}

// answerLooks is how often an answer is found untaken before it is given up.
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

// awaitsCaller reports whether a call has a slot and goes on only when its caller
// does something: it leaves bytes of the answer here (or its end in this process
// does), or it has not ended its
// request and none of that waits for the worker. The latter is also so of a quiet
// conversation whose worker has nothing to say, or thinks; nobody can see that
// from here. A caller that has ended its request, and takes what there is, does
// its part, however long the worker is silent.
func (c *call) awaitsCaller() bool {
	switch {
	case c.state != callRunning || !c.lease.Valid():
		return false
	case c.respSent < len(c.resp), c.localCall().unread():
		return true
	default:
		return !c.reqEnd && c.reqSent == len(c.req)
	}
}
