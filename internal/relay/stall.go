package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

// stallLooks is how often the calls with a slot are looked at in the time after
// which a stalled one is ended: it ends no earlier, and at most an eighth later.
const stallLooks = 8

// fewLooks is the same for an answer that lies here while the budget is exceeded.
const fewLooks = 2

// stallWatch ends the calls of one shard whose callers hold slots and do nothing
// with them while others wait (R9).
//
// It costs a call nothing but a mark where its bytes move. Only while calls wait
// in the rank are those that have a slot looked at, some times a minute; the time
// in which nobody waits counts for nothing, so that a quiet stream is not cut off
// for the first call that has to wait a moment. In the same way it ends calls whose
// answers lie here, untaken and without a slot, when room for others gets short.
//
// Concurrency: guarded by the lock of its shard.
type stallWatch struct {
	st      *stand
	timer   shard.Timer
	every   time.Duration // 0: never
	stalled []failer      // scratch
}

// failer is a call or an exchange.
type failer interface {
	fail(why ending, now time.Duration)
}

func newStallWatch(st *stand, after time.Duration) *stallWatch {
	w := &stallWatch{st: st, every: after / stallLooks}
	w.timer.Owner = w
	return w
}

// wind has the watch look again, while there are calls.
func (w *stallWatch) wind(now time.Duration) {
	if w.every > 0 && !w.timer.Set() {
		w.st.SetTimer(&w.timer, now+w.every)
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
		c.idle = 0
	default:
		w.lookAt(c, &c.idle, stallLooks)
	}
}

// lookAtAnswer looks at a call by its stream to a caller. It holds no slot any more,
// but memory, until the caller takes what its worker has left here. So does an
// exchange whose handler waits for its caller.
func (w *stallWatch) lookAtAnswer(s *h2.Stream) {
	switch o := s.Owner.(type) {
	case *call:
		if o.state == callOver && o.respSent < len(o.resp) {
			w.lookAt(o, &o.idle, w.looks())
		}
	case *Exchange:
		if o.awaitsCaller() {
			w.lookAt(o, &o.idle, w.looks())
		}
	}
}

// looks is how often an answer is found untaken before it is given up.
func (w *stallWatch) looks() uint8 {
	if w.st.relay.budget.Exceeded() {
		return fewLooks
	}
	return stallLooks
}

func (w *stallWatch) lookAt(f failer, idle *uint8, looks uint8) {
	if *idle < looks {
		*idle++
		return
	}
	w.stalled = append(w.stalled, f)
}

// awaitsCaller reports whether a call has a slot and goes on only when its caller
// does something: it leaves bytes of the answer here, or it has not ended its
// request and none of that waits for the worker. The latter is also so of a quiet
// conversation whose worker has nothing to say, or thinks; nobody can see that
// from here. A caller that has ended its request, and takes what there is, does
// its part, however long the worker is silent.
func (c *call) awaitsCaller() bool {
	switch {
	case c.state != callRunning || !c.lease.Valid():
		return false
	case c.respSent < len(c.resp):
		return true
	default:
		return !c.reqEnd && c.reqSent == len(c.req)
	}
}
