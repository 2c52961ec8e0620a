package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// Sight is what Activity tells of an endpoint. A zero time is never.
type Sight struct {
	InFlight int       // calls that run there
	Answered time.Time // when it last answered a call to the end
	Heard    time.Time // when the last byte of an answer came from it
	Owed     time.Time // when the oldest call there began that was sent to its end and is not answered with a byte; seen after a second of silence
	Left     time.Time // when a call there was last given up by its caller or its deadline
	Longest  time.Duration
	Doubtful bool      // it is silent although a call should long be over, and others speak
	Served   uint64    // calls that have ended there since AddEndpoint, in whatever way; not those that it has refused or never seen
	Oldest   time.Time // when the oldest call that runs there was sent
}

// Activity tells what is known of an endpoint's work (R6). InFlight, Answered,
// Served and Oldest are of now, the rest is up to 250 ms old. Longest is the longest run
// ever seen of the methods of the calls that Owed and Left are about. A call
// that its caller or its deadline ended is no sign of life.
//
// Cost: the lock of each shard, and a look at each call that runs there.
func (r *Relay) Activity(e *Endpoint) Sight {
	e.mu.Lock()
	s, doubtful := e.seen, e.doubtful
	e.mu.Unlock()
	inFlight := r.rank.InFlight(e.slots)
	served, oldest := r.servedBy(e, inFlight > 0)
	return Sight{
		InFlight: inFlight, Served: served, Oldest: r.at(oldest),
		Answered: r.at(time.Duration(e.lastDone.Load())),
		Heard:    r.at(s.heard), Owed: r.at(s.owed), Left: r.at(s.left),
		Longest: s.longest, Doubtful: doubtful,
	}
}

// servedBy counts the calls that have ended at an endpoint and, if any run
// there, finds out when the oldest of them got its slot; 0: none runs.
func (r *Relay) servedBy(e *Endpoint, run bool) (calls uint64, oldest time.Duration) {
	note := func(s *h2.Stream) {
		if l := s.Owner.(*attempt).lease; l.Valid() && (oldest == 0 || l.At() < oldest) {
			oldest = l.At()
		}
	}
	r.each(func(st *stand) {
		u := st.upstreamOf(e.slots)
		calls += u.served
		for _, uc := range u.conns {
			if run {
				uc.link.Conn.Each(note)
			}
		}
	})
	return calls, oldest
}
