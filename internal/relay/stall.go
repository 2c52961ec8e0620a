package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

// stallLooks is how often the calls with a slot are looked at in the time after
// which a stalled one is ended: it ends no earlier, and at most an eighth later.
const stallLooks = 8

// stallWatch ends the calls of one shard whose callers hold slots and do nothing
// with them while others wait (R9).
//
// It costs a call nothing but a mark where its bytes move. Only while calls wait
// in the rank are those that have a slot looked at, some times a minute; the time
// in which nobody waits counts for nothing, so that a quiet stream is not cut off
// for the first call that has to wait a moment.
//
// Concurrency: guarded by the lock of its shard.
type stallWatch struct {
	st      *stand
	timer   shard.Timer
	every   time.Duration // 0: never
	stalled []*call       // scratch
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
	if w.st.relay.Waiting() > 0 {
		w.look(now)
	}
}

func (w *stallWatch) look(now time.Duration) {
	for _, u := range w.st.upstreams {
		for _, uc := range u.conns {
			uc.link.Conn.Each(w.lookAt)
		}
	}
	for i, c := range w.stalled {
		c.fail(endedStalled, now)
		w.stalled[i] = nil
	}
	w.stalled = w.stalled[:0]
}

func (w *stallWatch) lookAt(s *h2.Stream) {
	a := s.Owner.(*attempt)
	c := a.call
	switch {
	case a != &c.attempt: // a second one of the same call
	case !c.awaitsCaller():
		c.idle = 0
	case c.idle == stallLooks:
		w.stalled = append(w.stalled, c)
	default:
		c.idle++
	}
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
