package discover

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
)

const (
	// lookEvery is how often an endpoint is looked at: whether it is to be asked,
	// has answered, or has ended its last call.
	lookEvery = 250 * time.Millisecond
	// cutGrace is how long calls that were cut may take to be answered: a call in the
	// middle of a message has a second for the rest of it.
	cutGrace = 1500 * time.Millisecond
)

// wish is what the roster wants of a member.
type wish uint8

const (
	serve   wish = iota // take calls if it can
	standBy             // be ready to take calls
	leave               // end its calls and go
)

// asker is check.Asker and its connection. Tests replace it.
type asker interface {
	Connection() connection
	Configure(interval, timeout time.Duration)
	Due(last health.Answer, urgent bool) bool
	Ask(ctx context.Context) health.Answer
	Close()
}

// grpcAsker is the asker outside tests.
type grpcAsker struct{ *check.Asker }

// Connection implements asker.
func (l grpcAsker) Connection() connection { return l.Conn() }

func openAsker(o check.Options) (asker, error) {
	a, err := check.Open(o)
	return grpcAsker{a}, err
}

// member is one endpoint, for as long as any upstream names it.
//
// Concurrency: the fields belong to the goroutine of run, except where the comments say
// otherwise.
type member struct {
	// Set by the roster, never changed.
	roster           *Roster
	name             string
	network, address string
	log              *slog.Logger
	wake             chan struct{} // one token: the wish has changed

	// Guarded by Roster.mu.
	wish    wish
	drained bool     // the operator has taken it out: it gets no calls
	from    []string // upstreams that name it
	hopeful bool     // it may be able to take calls: no evidence speaks against it
	state   State
	since   time.Time
	reason  string

	contacts chan contact
	answers  chan health.Answer
	helpers  sync.WaitGroup

	asker   asker
	rhythm  *Times    // of the asker
	tried   bool      // the first attempt to connect has ended
	judged  bool      // it is known whether it can take calls, or was once
	reached bool      // the connection is up, or has ended just now
	stoodAt time.Time // when the connection was made
	lostAt  time.Time // when it ended; zero: it is up
	lost    string    // why it is not up
	asking  bool
	last    health.Answer
	judge   health.Judge

	up      bool      // Registry.Up was the last call
	toldOf  bool      // Registry.Suspect was called since then
	leaving time.Time // when its wish was first seen to be leave; zero: it is not
	cut     time.Time // when its last calls were cut
}

func newMember(r *Roster, name string) *member {
	network, address := split(name)
	return &member{
		roster: r, name: name, network: network, address: address,
		log: r.options.Logger.With("upstream", name), wake: make(chan struct{}, 1),
		hopeful: true, since: time.Now(),
		contacts: make(chan contact), answers: make(chan health.Answer),
	}
}

// run watches the endpoint until it has left or ctx ends.
func (m *member) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.roster.options.Membership.Add(m.name)
	if !m.open() {
		<-ctx.Done()
		return
	}
	defer m.helpers.Wait()
	defer m.asker.Close()
	defer cancel()
	reach := reacher{asker: m.asker, contacts: m.contacts}
	m.helpers.Go(func() { reach.run(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-m.contacts:
			m.meet(c)
		case a := <-m.answers:
			m.hear(a)
		case <-m.wake:
		case <-tick.C:
		}
		work := m.roster.options.Activity.Activity(m.name)
		m.keepTime()
		m.miss(time.Now())
		m.ask(ctx)
		work.TurnsAway = work.TurnsAway && m.up
		m.judge.Look(work, time.Time{}, time.Now())
		m.report(work)
		if m.hasLeft(work) {
			return
		}
	}
}

// open makes the asker. It fails for an invalid address.
func (m *member) open() bool {
	o, times := &m.roster.options, m.roster.times.Load()
	opened, err := m.roster.open(check.Options{
		Network: m.network, Address: m.address, Dial: o.Dial,
		Interval: times.HealthInterval, Timeout: times.HealthTimeout, Redial: maxPause,
		Work: func() health.Work { return o.Activity.Activity(m.name) },
	})
	if err != nil {
		m.log.Error("upstream cannot be watched", "error", err)
		return false
	}
	m.asker, m.rhythm = opened, times
	return true
}

// meet takes in a change of the connection.
func (m *member) meet(c contact) {
	switch c.event {
	case stands:
		m.tried, m.reached, m.stoodAt, m.lostAt = true, true, time.Now(), time.Time{}
		m.last = health.Answer{} // it may be another process now, which is asked at once
	case lost:
		m.lostAt = time.Now()
	case gone:
		m.leaveUnreached(c.reason)
	}
}

// miss gives up a connection that has been lost for too long.
func (m *member) miss(now time.Time) {
	if m.reached && !m.lostAt.IsZero() && now.Sub(m.lostAt) >= lostFor {
		m.leaveUnreached("the connection has ended and cannot be had again")
	}
}

func (m *member) leaveUnreached(why string) {
	m.tried, m.judged, m.reached, m.lost = true, true, false, why
	m.judge = health.Judge{}
}

// ask asks the next health question if it is due. At most one is under way.
func (m *member) ask(ctx context.Context) {
	if !m.reached || !m.lostAt.IsZero() || m.asking || !m.asker.Due(m.last, false) {
		return
	}
	m.asking = true
	m.helpers.Go(func() { // ends with its question; closing the asker ends that
		a := m.asker.Ask(ctx)
		select {
		case m.answers <- a:
		case <-ctx.Done():
		}
	})
}

// hear takes in an answer, unless the connection was lost meanwhile: the question may
// have failed because of that.
func (m *member) hear(a health.Answer) {
	m.asking = false
	if m.reached && m.lostAt.IsZero() && !a.Asked.Before(m.stoodAt) {
		m.last, m.judged = a, true
		m.judge.Hear(a, time.Now())
	}
}

// report tells the registry, the log and the roster what has changed.
func (m *member) report(work Work) {
	wanted, drained := m.roster.orders(m)
	able := m.judge.Serving && wanted == serve && !drained
	registry := m.roster.options.Registry
	switch {
	case able && !m.up:
		registry.Up(m.name, m.network, m.address)
		m.roster.reached.Store(true)
	case !able && m.up:
		registry.Down(m.name)
	}
	fell := m.up && !able && wanted == serve && !drained
	m.toldOf = m.toldOf && able == m.up
	if m.up = able; m.up && m.judge.IsSilent() != m.toldOf {
		m.toldOf = m.judge.IsSilent()
		registry.Suspect(m.name, m.toldOf)
	}
	now := m.stateFor(wanted, drained)
	m.tell(now, work)
	well := m.judge.Serving && m.judge.Verdict() == health.OK && !drained
	m.roster.note(m, now, m.why(now), well || !m.judged)
	if fell {
		m.roster.lookUpAgain(m)
	}
}

// stateFor returns the state of the endpoint.
func (m *member) stateFor(wanted wish, drained bool) State {
	switch {
	case wanted == leave:
		return Draining
	case !m.tried:
		return Starting
	case !m.reached:
		return Unreachable
	case !m.judge.Serving && m.judge.Reason == "":
		return Starting
	case !m.judge.Serving:
		return NotServing
	case drained:
		return Drained
	case wanted == standBy:
		return Standby
	case m.judge.Verdict() != health.OK:
		return Suspect
	default:
		return Ready
	}
}

// why gives the reason for a state.
func (m *member) why(state State) string {
	switch state {
	case Unreachable:
		return m.lost
	case Suspect:
		return m.judge.Why()
	case NotServing:
		return m.judge.Reason
	default:
		return ""
	}
}

// tell logs a change of state.
func (m *member) tell(now State, work Work) {
	before := m.state // only this goroutine writes it
	if now == before {
		return
	}
	switch now {
	case Ready:
		if before == Suspect {
			m.log.Info("upstream answers again")
		} else {
			m.log.Info("upstream is up", "was", before.String())
		}
	case Suspect:
		m.tellSuspect()
	case NotServing:
		m.log.Warn("upstream takes no calls", "reason", m.judge.Reason)
	case Unreachable:
		m.log.Warn("upstream is down", "error", m.lost)
	case Drained, Standby:
		m.log.Info("upstream gets no new calls", "state", now.String())
	case Draining:
		m.log.Info("upstream removed", "calls", work.InFlight)
	case Starting:
	}
}

func (m *member) tellSuspect() {
	if m.judge.IsSilent() {
		m.log.Warn("upstream is silent and gets no new calls", "reason", m.judge.Reason)
	} else {
		m.log.Warn("upstream turns calls away and gets one only now and then", "reason", health.TurnsAway)
	}
}

// hasLeft ends the calls of an endpoint that no upstream names any more, and reports
// whether the endpoint is removed.
func (m *member) hasLeft(work Work) bool {
	if m.state != Draining {
		m.leaving, m.cut = time.Time{}, time.Time{}
		return false
	}
	now, limit := time.Now(), m.roster.times.Load().DrainTimeout
	if m.leaving.IsZero() {
		m.leaving = now
	}
	switch {
	case work.InFlight == 0 || !m.cut.IsZero() && now.Sub(m.cut) >= cutGrace:
		return m.roster.retire(m)
	case m.cut.IsZero() && now.Sub(m.leaving) >= limit:
		m.cut = now
		m.log.Warn("upstream has not ended its calls in time, they are cut", "calls", work.InFlight, "drain_timeout", limit.String())
		m.roster.options.Membership.Cut(m.name)
	}
	return false
}
