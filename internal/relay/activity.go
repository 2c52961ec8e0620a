package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/health"
)

// Activity tells what is known of an endpoint's work, as evidence for its judge (R6).
// InFlight, Answered, Served, Cuts, Oldest and TurnsAway are of now, the rest is up to 250
// ms old; Owed is seen after a moment of silence.
//
// Cost: the lock of each shard, and a look at each call that runs there.
func (r *Relay) Activity(e *Endpoint) health.Work {
	e.mu.Lock()
	s := e.seen
	e.mu.Unlock()
	inFlight := r.rank.InFlight(e.slots)
	all := r.tally(e, inFlight > 0)
	return health.Work{
		InFlight: inFlight, Slots: e.size, Served: all.served, Cuts: all.cuts, Oldest: r.at(all.oldest),
		Answered: r.at(e.answered()), TurnsAway: all.turned > e.answered(),
		Heard: r.at(s.heard), Owed: r.at(s.owed), Owing: s.owing, Method: s.method, Left: r.at(s.left),
		GivenUp: s.given.calls, First: r.at(s.given.first), Latest: r.at(s.latest),
		Longest: s.longest, Overdue: e.overdue.Load(), Sent: s.sent,
	}
}

// tally is what all shards together know of an endpoint. Instants are 0 for never.
type tally struct {
	served, cuts uint64        // calls that have ended there; those of them that were cut
	oldest       time.Duration // when the oldest call that runs there got its slot
	turned       time.Duration // when it last turned calls away, on a shard where it keeps doing so
}

// tally asks the shards about an endpoint; run says that calls run there.
func (r *Relay) tally(e *Endpoint, run bool) (all tally) {
	note := func(s *h2.Stream) {
		if l := s.Owner.(*attempt).lease; l.Valid() && (all.oldest == 0 || l.At() < all.oldest) {
			all.oldest = l.At()
		}
	}
	r.each(func(st *stand) {
		u := st.upstreamOf(e.slots)
		all.served, all.cuts = all.served+u.served, all.cuts+u.cuts
		all.turned = max(all.turned, u.turned.Last())
		for _, uc := range u.conns {
			if run {
				uc.link.Conn.Each(note)
			}
		}
	})
	return all
}
