package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// Sight is what Activity tells of an endpoint. A zero time is never.
type Sight struct {
	InFlight int       // calls that run there
	Answered time.Time // when it last answered a call to the end
	Heard    time.Time // when it last showed in an answer that a thread works; a refusal does not
	Owed     time.Time // when the oldest call there began that was sent to its end and is not answered with a byte; seen after a moment of silence
	Owing    int       // calls that Owed is about
	Method   string    // path of the oldest of them, else of the last call that was given up like them; at most 200 bytes
	Left     time.Time // when a call there was last given up by its caller or its deadline
	GivenUp  int       // calls that were given up so since Heard, and were like that of Owed
	First    time.Time // when the first of these began
	Latest   time.Time // when the youngest began of all those that Owed and GivenUp are about
	Longest  time.Duration
	Doubtful bool      // it is silent although a call should long be over, and others speak
	Served   uint64    // calls that have ended there since AddEndpoint, in whatever way; not those that it has refused or never seen
	Oldest   time.Time // when the oldest call that runs there was sent
	Cuts     uint64    // calls that Cut has ended there since AddEndpoint
	Opened   uint64    // calls that were ever sent there, also those that it has refused
	// TurnsAway says that it ends connections with calls on them that it has not looked
	// at, and has answered nothing meanwhile.
	TurnsAway bool
}

// Activity tells what is known of an endpoint's work (R6). InFlight, Answered,
// Served, Cuts, Oldest and TurnsAway are of now, the rest is up to 250 ms old. Longest is the
// longest time ever seen until an answer began to a call of the methods that Owed and
// GivenUp are about. A call that its caller or its deadline ended is no sign of life.
//
// Cost: the lock of each shard, and a look at each call that runs there.
func (r *Relay) Activity(e *Endpoint) Sight {
	e.mu.Lock()
	s, doubtful := e.seen, e.doubtful
	e.mu.Unlock()
	inFlight := r.rank.InFlight(e.slots)
	all := r.tally(e, inFlight > 0)
	return Sight{
		InFlight: inFlight, Served: all.served, Cuts: all.cuts, Oldest: r.at(all.oldest), TurnsAway: all.turned > e.answered(),
		Answered: r.at(e.answered()),
		Heard:    r.at(s.heard), Owed: r.at(s.owed), Owing: s.owing, Method: s.method, Left: r.at(s.left),
		GivenUp: s.given.calls, First: r.at(s.given.first), Latest: r.at(s.latest),
		Longest: s.longest, Doubtful: doubtful, Opened: s.opened,
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
		if u.turned.bad() {
			all.turned = max(all.turned, u.turned.last)
		}
		for _, uc := range u.conns {
			if run {
				uc.link.Conn.Each(note)
			}
		}
	})
	return all
}
