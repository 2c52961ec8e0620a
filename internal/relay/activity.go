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

// sight is what one look at an endpoint finds, over all shards: the evidence, and what of it
// is compared with instants of the relay's. Those are 0 for never.
type sight struct {
	health.Work
	heard, turned time.Duration // when it was heard last, and turned calls away on a shard where it keeps doing so
	quiet         bool          // it has been silent for a moment: only then it is told what it owes
	// asked is when the first call was sent to its end that came after that byte
	// and whose method is known, whether it runs still or was given up; due is when
	// it should have been answered.
	asked, due time.Duration
	waits      int // calls that run there and are owed no answer
}

// Activity tells what is known of an endpoint's work, as evidence for its judge (R6). That
// others have spoken counts when their Activity was asked for.
//
// Cost: the lock of each shard, twice where calls run, and a look at each call there.
func (r *Relay) Activity(e *Endpoint) health.Work {
	now, s := r.now(), sight{Work: health.Work{InFlight: r.rank.InFlight(e.slots), Slots: e.size}}
	r.each(func(st *stand) { e.upstreams[st.number].hear(&s) })
	ready := e.ready.Load()
	for was := r.spoken.Load(); ready && int64(s.heard) > was && !r.spoken.CompareAndSwap(was, int64(s.heard)); {
		was = r.spoken.Load()
	}
	s.Heard, s.quiet = r.at(s.heard), now-s.heard >= quietAfter
	if s.InFlight > 0 || s.quiet && s.Left.After(s.Heard) {
		r.each(func(st *stand) { e.upstreams[st.number].listen(&s) })
	}
	if s.Owing == 0 && s.waits >= e.size {
		// Each slot has a call that waits for its caller. They could not all run while a
		// thread is held by one that was given up.
		s.GivenUp, s.First, s.Latest, s.Longest = 0, time.Time{}, time.Time{}, 0
	}
	s.Answered, s.TurnsAway = r.at(e.answered()), s.turned > e.answered()
	s.Overdue = ready && health.IsOverdue(s.due, time.Duration(r.spoken.Load()), now)
	return s.Work
}

// hear adds what came to this shard, and what was sent by it.
func (u *upstream) hear(s *sight) {
	s.Served, s.Cuts, s.Sent = s.Served+u.served, s.Cuts+u.cuts, s.Sent+u.calls
	s.heard, s.turned = max(s.heard, u.lastHeard()), max(s.turned, u.turned.Last())
	s.Left = health.Later(s.Left, u.st.relay.at(u.left))
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
		r := u.st.relay
		s.GivenUp, s.First = s.GivenUp+given.calls, health.Earlier(s.First, r.at(given.first))
		s.owes(r, u.last, u.lastOf)
		if s.Owed.IsZero() {
			s.Method = string(u.path)
		}
	}
}

// add adds a call that runs, if it has a slot.
func (s *sight) add(a *attempt) {
	if !a.lease.Valid() {
		return
	}
	r := a.call.st.relay
	began := r.at(a.lease.At())
	s.Oldest = health.Earlier(s.Oldest, began)
	switch {
	case !s.quiet:
	case !a.owed():
		s.waits++
	default:
		s.Owing++
		if s.Owed.IsZero() || began.Before(s.Owed) {
			s.Owed, s.Method = began, string(a.call.appendPath(nil))
		}
		s.owes(r, a.lease.At(), a.call.method)
	}
}

// owes adds a call that began at an instant.
func (s *sight) owes(r *Relay, began time.Duration, m *method) {
	s.Latest = health.Later(s.Latest, r.at(began))
	s.Longest = max(s.Longest, r.runsOf(m).Longest(began))
}

// at turns an instant into a time, 0 into the zero time.
func (r *Relay) at(now time.Duration) time.Time {
	if now == 0 {
		return time.Time{}
	}
	return r.start.Add(now)
}
