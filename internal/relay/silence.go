package relay

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// lookEvery is how often endpoints are looked at for their silence.
	lookEvery = 250 * time.Millisecond
	// minDoubt is the least silence that is worth a doubt: workers stop for as
	// long to collect garbage or to load code.
	minDoubt = time.Second
	// longRuns times the longest run that a method usually has is how long its
	// calls may take before silence tells anything (R6).
	longRuns = 3
)

// sight is what one look at an endpoint found, over all shards. Instants are 0
// for never.
type sight struct {
	ready bool
	heard time.Duration // when a byte of an answer came last
	// asked is when the first call was sent to its end that came after that byte
	// and whose method is known, whether it runs still or was given up; usual is
	// its method's longest usual run.
	asked, usual time.Duration
	// owed is when the oldest call began that was sent to its end and is not
	// answered with a byte; left when a call was given up there; longest the
	// longest run ever seen of the methods of these.
	owed, left, longest time.Duration
}

// due is when the call of asked should have been answered, 0 if nobody knows.
func (s *sight) due() time.Duration {
	if s.asked == 0 {
		return 0
	}
	return s.asked + max(minDoubt, longRuns*s.usual)
}

// doubtful reports whether the endpoint of all[i] is silent although it should
// long have spoken (R6): a call that was sent after its last byte is overdue,
// and another endpoint has spoken after that. If none has, every call is simply
// long, or what all of them wait for is slow, and nobody is sick.
func doubtful(all []sight, i int, now time.Duration) bool {
	due := all[i].due()
	if !all[i].ready || due == 0 || now <= due {
		return false
	}
	for j := range all {
		if j != i && all[j].ready && all[j].heard > due {
			return true
		}
	}
	return false
}

// looker looks at the endpoints while calls run. While there are none it sleeps,
// and costs nothing.
type looker struct {
	once   sync.Once // closes quit
	quit   chan struct{}
	done   chan struct{}
	asleep atomic.Bool
	wake   chan struct{} // one token

	// Scratch of its goroutine.
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
	if r.anythingRuns() && l.asleep.CompareAndSwap(true, false) {
		return true
	}
	select {
	case <-l.wake:
		return true
	case <-l.quit:
		return false
	}
}

// anythingRuns reports whether a call has a slot, or a doubt is open.
func (r *Relay) anythingRuns() bool {
	return slices.ContainsFunc(r.allEndpoints(), func(e *Endpoint) bool {
		return e.isDoubtful() || r.rank.InFlight(e.slots) > 0
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

// look finds out how silent each endpoint is and draws the conclusions.
func (l *looker) look(r *Relay, now time.Duration) {
	all := r.allEndpoints()
	l.sights = append(l.sights[:0], make([]sight, len(all))...)
	r.each(func(st *stand) {
		for i, e := range all {
			e.upstreams[st.number].hear(&l.sights[i])
		}
	})
	l.quiet = l.quiet[:0]
	for i := range l.sights {
		if l.sights[i].ready = all[i].ready.Load(); now-l.sights[i].heard >= minDoubt {
			l.quiet = append(l.quiet, i)
		}
	}
	if len(l.quiet) > 0 {
		r.each(func(st *stand) {
			for _, i := range l.quiet {
				all[i].upstreams[st.number].listen(&l.sights[i])
			}
		})
	}
	for i, e := range all {
		e.see(l.sights[i], doubtful(l.sights, i, now))
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

// spoke notes a frame of an answer. What else a worker sends says nothing of its
// health: servers on gRPC's C core greet a request with a PING of their own while
// all threads of the language behind them are stuck.
func (a *attempt) spoke(now time.Duration) {
	uc := a.via
	if uc == nil || uc.heard == now {
		return // it was left, and what comes late is for nobody; or that was seen
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

func (e *Endpoint) isDoubtful() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.doubtful
}

// see keeps what a look has found.
func (e *Endpoint) see(s sight, doubtful bool) {
	e.mu.Lock()
	e.seen, e.doubtful = s, doubtful
	e.mu.Unlock()
}

// silence is what an upstream remembers for the looks at it.
type silence struct {
	heard  time.Duration // last answer on connections that have ended
	left   time.Duration // when a call was last given up
	leftOf *method       // its method
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
	s.heard = max(s.heard, u.heard)
	for _, uc := range u.conns {
		s.heard = max(s.heard, uc.heard)
	}
	if u.left > s.left {
		s.left = u.left
		s.longest = max(s.longest, u.leftOf.longestRun(u.st.relay))
	}
}

// listen adds what this shard is owed by an endpoint that is quiet everywhere.
func (u *upstream) listen(s *sight) {
	for _, uc := range u.conns {
		switch usual := uc.askedOf.usualRun(); {
		case usual == 0:
			uc.asked = 0 // the next call may be of a method that is known
		case uc.asked > s.heard && (s.asked == 0 || uc.asked < s.asked):
			s.asked, s.usual = uc.asked, usual
		}
		uc.link.Conn.Each(func(stream *h2.Stream) {
			a := stream.Owner.(*attempt)
			if !a.lease.Valid() || a.answered || !a.up.LocalDone() {
				return
			}
			if at := a.lease.At(); s.owed == 0 || at < s.owed {
				s.owed = at
			}
			s.longest = max(s.longest, a.call.method.longestRun(u.st.relay))
		})
	}
}

// sent notes that a call was sent to its end, if it is the first since the last
// byte.
func (uc *upstreamConn) sent(m *method, now time.Duration) {
	if uc.asked <= uc.heard {
		uc.asked, uc.askedOf = now, m
		uc.upstream.st.relay.looker.rouse()
	}
}

// gaveUp notes that a call was cancelled there.
func (u *upstream) gaveUp(m *method, now time.Duration) {
	u.left, u.leftOf = now, m
	u.st.relay.looker.rouse()
}
