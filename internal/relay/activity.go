package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/stats"
)

const (
	// quietAfter is the silence after which pending calls count as evidence: while an
	// endpoint answers other calls, they say nothing about its health.
	quietAfter = 250 * time.Millisecond
	// mostPath is the longest part of a path that logs and reports get, octets.
	mostPath = 200
)

// snapshot is the evidence that one look at an endpoint finds on all shards. Its instants
// are those of the relay's clock, 0 for never.
type snapshot struct {
	health.Work
	heard, turned time.Duration // the last answer; the last call turned away, on shards where the endpoint keeps doing so
	quiet         bool          // silent for quietAfter: only then are pending calls added
	// asked is when the first call after that answer was sent completely, among calls of
	// known methods, running or given up; due is when its answer should have come.
	asked, due time.Duration
	waits      int // calls that run there and whose requests are not complete, or answered in part
}

// Activity returns the evidence about an endpoint's work, for package health (R6). It
// compares an endpoint with the others whose Activity is asked for, too.
//
// Cost: the lock of each shard, twice where calls run, and a look at each call there.
func (r *Relay) Activity(e *Endpoint) health.Work {
	now, s := r.now(), snapshot{Work: health.Work{InFlight: r.rank.InFlight(e.slots), Slots: e.size}}
	r.each(func(st *shardState) { e.upstreams[st.number].addAnswers(&s) })
	ready := e.ready.Load()
	for was := r.lastAnswer.Load(); ready && int64(s.heard) > was && !r.lastAnswer.CompareAndSwap(was, int64(s.heard)); {
		was = r.lastAnswer.Load()
	}
	s.Heard, s.quiet = r.at(s.heard), now-s.heard >= quietAfter
	if s.InFlight > 0 || s.quiet && s.Left.After(s.Heard) {
		r.each(func(st *shardState) { e.upstreams[st.number].addPending(&s) })
	}
	if s.Owing == 0 && s.waits >= e.size {
		// Each slot has a call that waits for its caller. They could not all run if a
		// given-up call still held a thread.
		s.GivenUp, s.First, s.Latest, s.Longest = 0, time.Time{}, time.Time{}, 0
	}
	s.Answered, s.TurnsAway = r.at(e.answered()), s.turned > e.answered()
	s.Overdue = ready && health.IsOverdue(s.due, time.Duration(r.lastAnswer.Load()), now)
	return s.Work
}

// addAnswers adds the answers that came to this shard and the calls that it sent.
func (u *upstream) addAnswers(s *snapshot) {
	s.Served, s.Cuts, s.Sent = s.Served+u.served, s.Cuts+u.cuts, s.Sent+u.calls
	s.heard, s.turned = max(s.heard, u.lastHeard()), max(s.turned, u.turned.Last())
	s.Left = health.Later(s.Left, u.st.relay.at(u.left))
}

// lastHeard returns when the last answer came to this shard.
func (u *upstream) lastHeard() time.Duration {
	heard := u.heard
	for _, uc := range u.conns {
		heard = max(heard, uc.heard)
	}
	return heard
}

// addPending adds the calls of this shard that run at the endpoint, and if the endpoint is
// quiet on all shards, the answers that it owes.
func (u *upstream) addPending(s *snapshot) {
	for _, uc := range u.conns {
		uc.link.Conn.Each(func(stream *h2.Stream) { s.addCall(stream.Owner.(*attempt)) })
		if !s.quiet {
			continue
		}
		switch usual := uc.askedOf.UsualRun(); {
		case usual == 0:
			uc.asked = 0 // the next call may be of a known method
		case uc.asked > s.heard && (s.asked == 0 || uc.asked < s.asked):
			s.asked, s.due = uc.asked, health.Due(uc.asked, usual)
		}
	}
	if given := u.given; s.quiet && given.calls > 0 && given.until > s.heard {
		r := u.st.relay
		s.GivenUp, s.First = s.GivenUp+given.calls, health.Earlier(s.First, r.at(given.first))
		s.addOwed(r, u.last, u.lastOf)
		if s.Owed.IsZero() {
			s.Method = string(u.path)
		}
	}
}

// addCall adds a running call, if it has a slot.
func (s *snapshot) addCall(a *attempt) {
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
		s.addOwed(r, a.lease.At(), a.call.method)
	}
}

// addOwed adds a call whose answer is pending since began.
func (s *snapshot) addOwed(r *Relay, began time.Duration, m *stats.Method) {
	s.Latest = health.Later(s.Latest, r.at(began))
	s.Longest = max(s.Longest, r.methods.OrOther(m).Runs.Longest(began))
}

// at turns an instant into a time, 0 into the zero time.
func (r *Relay) at(now time.Duration) time.Time {
	if now == 0 {
		return time.Time{}
	}
	return r.start.Add(now)
}

// Suspect closes the endpoint for new calls because it is silent, or opens it again (R6).
// Running calls go on, and it counts as ready. The first byte of an answer opens it, too.
func (r *Relay) Suspect(e *Endpoint, suspect bool) {
	e.suspect.Store(suspect)
	deliver(r.rank.SetSuspect(e.slots, suspect, r.now(), nil))
}

// alive reports whether a header block shows that a thread of the worker has worked. A
// refusal does not (R1, R6), nor the first of its two blocks (R2), nor the answer that a
// library sends by itself at the deadline.
func (a *attempt) alive(b *h2.Block, end bool) bool {
	if !end {
		return b.Fields > plainFields || !a.via.upstream.endpoint.local
	}
	w, found := b.Watched(head.FieldGRPCStatus)
	if !found {
		return true
	}
	switch code, _ := grpcwire.ParseCode(w.Value); code {
	case grpcwire.ResourceExhausted:
		return !a.hasRefusalText(b)
	case grpcwire.DeadlineExceeded, grpcwire.Cancelled:
		return !a.call.late()
	default:
		return true
	}
}

// endedByClock reports whether the worker's library ended the call at its deadline: the
// handler may still run.
func (a *attempt) endedByClock() bool {
	return a.code == grpcwire.DeadlineExceeded && a.call.late()
}

// noteAnswer notes a frame of an answer that shows life. Other frames say nothing about the
// worker's health: servers on gRPC's C core send a PING at each request, even while all
// threads of the language above are stuck.
func (a *attempt) noteAnswer(now time.Duration) {
	uc := a.via
	if uc == nil || uc.heard == now {
		return // the attempt has left the connection, or this instant is noted
	}
	if u := uc.upstream; uc.heard == 0 || u.turned.Any() {
		u.turned, u.dials.failures = health.Turned{}, 0
	}
	uc.heard = now
	if e := uc.upstream.endpoint; e.suspect.Load() && e.suspect.CompareAndSwap(true, false) {
		st := a.call.st
		st.grants = st.relay.rank.SetSuspect(e.slots, false, now, st.grants[:0])
		deliver(st.grants)
	}
}

// givenUp counts calls that were given up before a byte of their answer: their handlers may
// run on (R5), and their ends stay unknown.
type givenUp struct {
	calls int
	first time.Duration // when the first of them began
	until time.Duration // when the last of them was given up
}

// upstreamActivity is an upstream's record for Relay.Activity.
type upstreamActivity struct {
	heard  time.Duration // last answer on ended connections
	left   time.Duration // when a call was last given up
	given  givenUp       // since the last answer
	last   time.Duration // when the last call of given began
	lastOf *stats.Method // its method
	path   []byte        // its path
	calls  uint64        // all calls that were sent there
}

// connActivity is the record of an upstream connection: the last byte of an answer, when the
// first call after it was sent completely, and that call's method.
type connActivity struct {
	heard   time.Duration
	asked   time.Duration
	askedOf *stats.Method
}

// owed reports whether the call was sent completely and has no byte of an answer.
func (a *attempt) owed() bool { return !a.answered && a.up.LocalDone() }

// sent notes that a call was sent completely, if it is the first since the last answer.
func (uc *upstreamConn) sent(m *stats.Method, now time.Duration) {
	if uc.asked <= uc.heard {
		uc.asked, uc.askedOf = now, m
	}
}

// noteGivenUp notes a cancelled call, which began at the given instant. Its handler may run
// on and hold a thread (R5).
func (u *upstream) noteGivenUp(a *attempt, began, now time.Duration) {
	u.left = now
	if a.owed() || a.endedByClock() {
		if u.given.until <= u.lastHeard() {
			u.given = givenUp{} // an answer since: a thread has finished
		}
		if u.given.calls++; u.given.calls == 1 {
			u.given.first = began
		}
		u.given.until, u.last, u.lastOf = now, max(u.last, began), a.call.method
		u.path = a.call.appendPath(u.path[:0])
	}
}

// touchEvery is the resolution of Endpoint.lastDone: a store for each call would move its
// cache line between cores at each call.
const touchEvery = time.Millisecond

// touch notes that the endpoint has completed an answer.
func (u *upstream) touch(now time.Duration) {
	if now >= u.touched+touchEvery || u.touched == 0 {
		u.touched = now
		u.endpoint.lastDone.Store(int64(now))
	}
}
