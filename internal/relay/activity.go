package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/health"
)

const (
	// quietAfter is the silence from which on it is told what an endpoint owes: one that
	// answers calls all the time owes nothing that tells anything.
	quietAfter = 250 * time.Millisecond
	// mostPath bounds the path of a call where it is told, octets.
	mostPath = 200
)

// sight is what one look at an endpoint finds, over all shards. Instants are 0
// for never.
type sight struct {
	served, cuts, sent uint64        // calls
	turned             time.Duration // when it last turned calls away, on a shard where it keeps doing so
	oldest             time.Duration // when the oldest call that runs there got its slot
	heard              time.Duration // when a byte of an answer came last
	left               time.Duration // when a call was given up there

	// quiet says that it has been silent for a moment. Only then the rest is known.
	quiet bool
	// asked is when the first call was sent to its end that came after that byte
	// and whose method is known, whether it runs still or was given up; due is when
	// it should have been answered.
	asked, due time.Duration
	// owing is how many calls run there that were sent to their end and are not
	// answered with a byte, owed when the oldest of them began, and waits how many
	// others run there.
	owing, waits int
	owed         time.Duration
	method       string // of the call of owed, else of the last of given
	// given are the calls of owed's kind that were given up since heard. latest is
	// when the youngest call of either kind began, and longest the longest run
	// ever seen of their methods.
	given           givenUp
	latest, longest time.Duration
}

// Activity tells what is known of an endpoint's work, as evidence for its judge (R6). Owed
// and what belongs to it is told after a moment of silence. That others have spoken counts
// when their Activity was asked for.
//
// Cost: the lock of each shard, twice where calls run, and a look at each call there.
func (r *Relay) Activity(e *Endpoint) health.Work {
	now, inFlight := r.now(), r.rank.InFlight(e.slots)
	var s sight
	r.each(func(st *stand) { e.upstreams[st.number].hear(&s) })
	if e.ready.Load() {
		for was := r.spoken.Load(); int64(s.heard) > was && !r.spoken.CompareAndSwap(was, int64(s.heard)); was = r.spoken.Load() {
			continue
		}
	}
	if s.quiet = now-s.heard >= quietAfter; inFlight > 0 || s.quiet && s.left > s.heard {
		r.each(func(st *stand) { e.upstreams[st.number].listen(&s) })
	}
	if s.owing == 0 && s.waits >= e.size {
		// Each slot has a call that waits for its caller. They could not all run while a
		// thread is held by one that was given up.
		s.given, s.latest, s.longest = givenUp{}, 0, 0
	}
	return health.Work{
		InFlight: inFlight, Slots: e.size, Served: s.served, Cuts: s.cuts, Sent: s.sent, Oldest: r.at(s.oldest),
		Answered: r.at(e.answered()), TurnsAway: s.turned > e.answered(),
		Heard: r.at(s.heard), Owed: r.at(s.owed), Owing: s.owing, Method: s.method,
		GivenUp: s.given.calls, First: r.at(s.given.first), Left: r.at(s.left), Latest: r.at(s.latest), Longest: s.longest,
		Overdue: e.ready.Load() && health.IsOverdue(s.due, time.Duration(r.spoken.Load()), now),
	}
}

// hear adds what came to this shard, and what was sent by it.
func (u *upstream) hear(s *sight) {
	s.served, s.cuts, s.sent = s.served+u.served, s.cuts+u.cuts, s.sent+u.calls
	s.heard, s.left, s.turned = max(s.heard, u.lastHeard()), max(s.left, u.left), max(s.turned, u.turned.Last())
}

// lastHeard is when an answer came to this shard last.
func (u *upstream) lastHeard() time.Duration {
	heard := u.heard
	for _, uc := range u.conns {
		heard = max(heard, uc.heard)
	}
	return heard
}

// listen adds the calls of this shard that run at an endpoint, and if it is quiet
// everywhere what it owes.
func (u *upstream) listen(s *sight) {
	for _, uc := range u.conns {
		uc.link.Conn.Each(func(stream *h2.Stream) { s.add(stream.Owner.(*attempt)) })
		if !s.quiet {
			continue
		}
		switch usual := uc.askedOf.usualRun(); {
		case usual == 0:
			uc.asked = 0 // the next call may be of a method that is known
		case uc.asked > s.heard && (s.asked == 0 || uc.asked < s.asked):
			s.asked, s.due = uc.asked, health.Due(uc.asked, usual)
		}
	}
	if given := u.given; s.quiet && given.calls > 0 && given.until > s.heard {
		s.given.calls += given.calls
		if s.given.first == 0 || given.first < s.given.first {
			s.given.first = given.first
		}
		s.owes(u.last, u.lastOf, u.st.relay)
		if s.owed == 0 {
			s.method = string(u.path)
		}
	}
}

// add adds a call that runs, if it has a slot.
func (s *sight) add(a *attempt) {
	began := a.lease.At()
	if !a.lease.Valid() {
		return
	}
	if s.oldest == 0 || began < s.oldest {
		s.oldest = began
	}
	switch {
	case !s.quiet:
	case !a.owed():
		s.waits++
	default:
		s.owing++
		if s.owed == 0 || began < s.owed {
			s.owed, s.method = began, string(a.call.appendPath(nil))
		}
		s.owes(began, a.call.method, a.call.st.relay)
	}
}

// owes adds a call that began at an instant.
func (s *sight) owes(began time.Duration, m *method, r *Relay) {
	s.latest = max(s.latest, began)
	s.longest = max(s.longest, r.runsOf(m).Longest(began))
}

// at turns an instant into a time, 0 into the zero time.
func (r *Relay) at(now time.Duration) time.Time {
	if now == 0 {
		return time.Time{}
	}
	return r.start.Add(now)
}
