package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

const (
	// silentLooks is how often calls are looked at that have a slot and of which
	// nothing but HEADERS has come.
	silentLooks = 100 * time.Millisecond
	// silentMost is how often in a row somebody may be found waiting for such a
	// slot before one call gives way at each look; they all do for somebody who has
	// waited since the last look.
	silentMost = 5
)

// silentWatch ends such calls when others wait for slots to which they have more
// of a claim (R9). A worker can have done nothing for them but wait, or think about
// speaking first.
//
// Its timer is wound only while there are some.
// Concurrency: guarded by the lock of its shard.
type silentWatch struct {
	st     *stand
	timer  shard.Timer
	looks  int     // in a row at which somebody waited
	silent []*call // scratch
}

func newSilentWatch(st *stand) *silentWatch {
	w := &silentWatch{st: st}
	w.timer.Owner = w
	return w
}

// wind has the watch look again.
func (w *silentWatch) wind(now time.Duration) {
	if w.st.stalls.every > 0 && !w.timer.Set() {
		w.st.SetTimer(&w.timer, now+silentLooks)
	}
}

// Expired implements shard.Expirer.
func (w *silentWatch) Expired(_ *shard.Timer, now time.Duration) {
	for _, u := range w.st.upstreams {
		for _, uc := range u.conns {
			uc.link.Conn.Each(w.look)
		}
	}
	if len(w.silent) > 0 {
		w.wind(now)
	}
	longest := time.Duration(0)
	for i, c := range w.silent { // one after the other: each makes room
		w.silent[i] = nil
		waited := w.st.relay.rank.Crowding(c.lease, now)
		longest = max(longest, waited)
		if waited >= silentLooks || waited > 0 && i == 0 && w.looks >= silentMost {
			c.fail(endedStalled, now)
		}
	}
	w.silent = w.silent[:0]
	if w.looks++; longest == 0 {
		w.looks = 0
	}
}

func (w *silentWatch) look(s *h2.Stream) {
	a := s.Owner.(*attempt)
	if c := a.call; a == &c.attempt && c.state == callRunning && c.lease.Valid() && c.silent() && !c.answered {
		w.silent = append(w.silent, c)
	}
}

// speaks tells the rank that a call that waits has sent more than HEADERS.
func (c *call) speaks() {
	if c.state == callQueued && c.ticket.Request.Silent {
		c.st.relay.rank.Speaks(&c.ticket)
	}
}

// silent reports whether nothing but HEADERS has come of a request.
func (c *call) silent() bool { return !c.reqEnd && c.reqBase == 0 && len(c.req) == 0 }
