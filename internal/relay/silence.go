package relay

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/health"
)

const (
	// lookEvery is how often endpoints are looked at for their silence.
	lookEvery = 250 * time.Millisecond
	// mostPath bounds the path of a call where it is told, octets.
	mostPath = 200
)

// sight is what one look at an endpoint found, over all shards. Instants are 0
// for never.
type sight struct {
	heard time.Duration // when a byte of an answer came last
	// asked is when the first call was sent to its end that came after that byte
	// and whose method is known, whether it runs still or was given up; due is when
	// it should have been answered.
	asked, due time.Duration
	// owing is how many calls run there that were sent to their end and are not
	// answered with a byte, owed when the oldest of them began, and waits how many
	// others run there; left is when a call was given up there.
	owing, waits int
	owed, left   time.Duration
	method       string // of the call of owed, else of the last of given
	// given are the calls of owed's kind that were given up since heard. latest is
	// when the youngest call of either kind began, and longest the longest run
	// ever seen of their methods.
	given           givenUp
	latest, longest time.Duration
	sent            uint64 // calls that were ever sent there
}

// givenUp are calls that were given up before they were answered with a byte: their
// handlers may run on (R5), and nobody will tell when one has ended.
type givenUp struct {
	calls int
	first time.Duration // when the first of them began
	until time.Duration // when the last of them was given up
}

// owes adds a call that began at an instant.
func (s *sight) owes(began time.Duration, m *method, r *Relay) {
	s.latest = max(s.latest, began)
	s.longest = max(s.longest, r.runsOf(m).Longest(began))
}

// looker looks at the endpoints while calls run. While there are none it sleeps,
// and costs nothing.
type looker struct {
	once   sync.Once // closes quit
	quit   chan struct{}
	done   chan struct{}
	asleep atomic.Bool
	wake   chan struct{} // one token

	// Of its goroutine.
	calm   bool // the last look has seen all there is to see
	sights []sight
	quiet  []int
}

func (l *looker) start(r *Relay) {
	l.quit, l.done, l.wake = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	go l.run(r) // ended by stop, which waits for it
}

// rouse has the looker look again: a call was sent, or given up. Whoever calls
// it has or had a lease until now, which sleep would have seen.
func (l *looker) rouse() {
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		l.wake <- struct{}{}
	}
}

// sleep waits until there is something to look at and reports false at the end.
func (l *looker) sleep(r *Relay) bool {
	l.asleep.Store(true)
	if (!l.calm || r.anythingRuns()) && l.asleep.CompareAndSwap(true, false) {
		return true
	}
	select {
	case <-l.wake:
		return true
	case <-l.quit:
		return false
	}
}

// anythingRuns reports whether a call has a slot, or an endpoint is overdue.
func (r *Relay) anythingRuns() bool {
	return slices.ContainsFunc(r.allEndpoints(), func(e *Endpoint) bool {
		return e.overdue.Load() || r.rank.InFlight(e.slots) > 0
	})
}

func (l *looker) run(r *Relay) {
	defer close(l.done)
	alarm := time.NewTimer(lookEvery)
	defer alarm.Stop()
	for l.sleep(r) {
		alarm.Reset(lookEvery)
		select {
		case <-l.quit:
			return
		case <-alarm.C:
			l.look(r, r.now())
		}
	}
}

func (l *looker) stop() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}

// look finds out how silent each endpoint is, and which of them are overdue.
func (l *looker) look(r *Relay, now time.Duration) {
	all, runs := r.allEndpoints(), r.anythingRuns()
	l.sights = append(l.sights[:0], make([]sight, len(all))...)
	r.each(func(st *stand) {
		for i, e := range all {
			e.upstreams[st.number].hear(&l.sights[i])
		}
	})
	l.quiet = l.quiet[:0]
	spoken := time.Duration(0) // when one that is ready did last
	for i := range l.sights {
		if all[i].ready.Load() {
			spoken = max(spoken, l.sights[i].heard)
		}
		if now-l.sights[i].heard >= lookEvery {
			l.quiet = append(l.quiet, i)
		}
	}
	l.calm = !runs && len(l.quiet) == len(all)
	if len(l.quiet) > 0 {
		r.each(func(st *stand) {
			for _, i := range l.quiet {
				all[i].upstreams[st.number].listen(&l.sights[i])
			}
		})
	}
	for i, e := range all {
		e.see(l.sights[i], e.ready.Load() && health.IsOverdue(l.sights[i].due, spoken, now))
	}
}

// allEndpoints returns those not removed. The slice is not changed any more.
func (r *Relay) allEndpoints() []*Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endpoints
}

// Suspect closes the endpoint for new calls because it is silent, or opens it
// again (R6). The calls that run there go on, and it counts as ready. The first
// byte of an answer opens it, too.
func (r *Relay) Suspect(e *Endpoint, suspect bool) {
	e.suspect.Store(suspect)
	deliver(r.rank.SetSuspect(e.slots, suspect, r.now(), nil))
}

// alive reports whether a header block of an answer shows that a thread of the
// worker's has worked. A refusal does not (R1, R6), nor the first of its two blocks
// (R2), nor what a library answers by itself when the deadline passes.
func (a *attempt) alive(b *h2.Block, end bool) bool {
	if !end {
		return b.Fields > plainFields || !a.via.upstream.endpoint.local
	}
	w, found := b.Watched(fieldGRPCStatus)
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

// spoke notes a frame of an answer that shows life. What else a worker sends says
// nothing of its health: servers on gRPC's C core greet a request with a PING of
// their own while all threads of the language behind them are stuck.
func (a *attempt) spoke(now time.Duration) {
	uc := a.via
	if uc == nil || uc.heard == now {
		return // it was left, and what comes late is for nobody; or that was seen
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

// at turns an instant into a time, 0 into the zero time.
func (r *Relay) at(now time.Duration) time.Time {
	if now == 0 {
		return time.Time{}
	}
	return r.start.Add(now)
}

// see keeps what a look has found. What was given up is dropped if every slot has a call
// that waits for its caller: they could not all run while a thread is held by one of those.
func (e *Endpoint) see(s sight, overdue bool) {
	if s.owing == 0 && s.waits >= e.size {
		s.given, s.latest, s.longest = givenUp{}, 0, 0
	}
	e.mu.Lock()
	e.seen = s
	e.mu.Unlock()
	e.overdue.Store(overdue)
}

// silence is what an upstream remembers for the looks at it.
type silence struct {
	heard  time.Duration // last answer on connections that have ended
	left   time.Duration // when a call was last given up
	given  givenUp       // since the last answer that a look has seen
	last   time.Duration // when the last call of given began
	lastOf *method       // its method
	path   []byte        // its path
	calls  uint64        // all that were sent there
}

// asking is what an upstream connection remembers: when a byte of an answer came
// last, when the first call was sent to its end after that, and its method.
type asking struct {
	heard   time.Duration
	asked   time.Duration
	askedOf *method
}

// hear adds the answers that came to this shard.
func (u *upstream) hear(s *sight) {
	s.heard, s.left = max(s.heard, u.heard), max(s.left, u.left)
	s.sent += u.calls
	for _, uc := range u.conns {
		s.heard = max(s.heard, uc.heard)
	}
}

// listen adds what this shard is owed by an endpoint that is quiet everywhere.
func (u *upstream) listen(s *sight) {
	for _, uc := range u.conns {
		switch usual := uc.askedOf.usualRun(); {
		case usual == 0:
			uc.asked = 0 // the next call may be of a method that is known
		case uc.asked > s.heard && (s.asked == 0 || uc.asked < s.asked):
			s.asked, s.due = uc.asked, health.Due(uc.asked, usual)
		}
		uc.link.Conn.Each(func(stream *h2.Stream) {
			a := stream.Owner.(*attempt)
			switch began := a.lease.At(); {
			case !a.lease.Valid():
			case !a.owed():
				s.waits++
			default:
				s.owing++
				if s.owed == 0 || began < s.owed {
					s.owed, s.method = began, string(a.call.appendPath(nil))
				}
				s.owes(began, a.call.method, u.st.relay)
			}
		})
	}
	switch given := u.given; {
	case given.calls == 0:
	case given.until <= s.heard: // a thread is through with what it had
		u.given = givenUp{}
	default:
		s.given.calls += given.calls
		s.given.until = max(s.given.until, given.until)
		if s.given.first == 0 || given.first < s.given.first {
			s.given.first = given.first
		}
		s.owes(u.last, u.lastOf, u.st.relay)
		if s.owed == 0 {
			s.method = string(u.path)
		}
	}
}

// owed reports whether the call was sent to its end and not answered with a byte.
func (a *attempt) owed() bool { return !a.answered && a.up.LocalDone() }

// sent notes that a call was sent to its end, if it is the first since the last
// byte.
func (uc *upstreamConn) sent(m *method, now time.Duration) {
	if uc.asked <= uc.heard {
		uc.asked, uc.askedOf = now, m
	}
}

// gaveUp notes that a call was cancelled there that began at an instant. Its handler
// may run on, and hold a thread (R5).
func (u *upstream) gaveUp(a *attempt, began, now time.Duration) {
	u.left = now
	if a.owed() || a.endedByClock() {
		if u.given.calls++; u.given.calls == 1 {
			u.given.first = began
		}
		u.given.until, u.last, u.lastOf = now, max(u.last, began), a.call.method
		u.path = a.call.appendPath(u.path[:0])
	}
	u.st.relay.looker.rouse()
}
