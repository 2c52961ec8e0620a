package rank

import (
	"slices"
	"time"
)

// model is what a rank is that serves all calls in the order in which they came, kept
// in plain slices: who waits in which order, which endpoint is chosen, how slots
// pause (R1), and when a Tick is needed. It has no accounts, lanes, methods and
// ghosts.
//
// Each method is told what the rank has said and fails the test if it was wrong. A
// nil model believes everything.
type model struct {
	*havoc
	limit int
	queue []*havocCall // head first
	token bool         // Wake has spoken since the last Tick
	armed time.Duration
	turn  int // leases so far
}

// withModel makes h the owner of the calls of a rank that the model knows.
func (h *havoc) withModel() *havoc {
	m := &model{havoc: h, limit: h.IntN(12)}
	rank := New(Options{QueueLength: m.limit, Order: FIFO, Admit: BoundedLength, Choose: LeastLoaded})
	h.house = &house{rank: rank, accounts: []*Account{nil}, methods: []*Method{nil}}
	h.model, h.gap = m, ms/2
	for range 1 + h.IntN(4) {
		h.bring()
	}
	return h
}

// acquired checks the answer to a call that asks for a slot.
func (m *model) acquired(c *havocCall, got Reply, why Reason) {
	if m == nil {
		return
	}
	c.putBack = false
	want, reason := m.reply(c), NoReason
	switch {
	case want == Refused:
		reason = DeadlineExceeded
	case want == Queued && len(m.queue) >= m.limit:
		want, reason = Refused, QueueFull
	}
	if got != want || why != reason {
		m.Fatalf("Acquire: %v, %v, want %v, %v", got, why, want, reason)
	}
}

func (m *model) reply(c *havocCall) Reply {
	switch {
	case c.Request.late(m.now):
		return Refused
	case len(m.queue) == 0 && len(m.free()) > 0:
		return Granted
	default:
		return Queued
	}
}

func (m *model) acquiredFree(c *havocCall, ok bool) {
	if m == nil {
		return
	}
	free := m.free()
	elsewhere := slices.ContainsFunc(free, func(e *havocEndpoint) bool { return e.Endpoint != c.Request.Avoid })
	if ok != (m.reply(c) == Granted && elsewhere) {
		m.Fatalf("AcquireFree: %v with %d waiting and %d endpoints free", ok, len(m.queue), len(free))
	}
}

// rejoined checks the answer to a call that is put back, which no full queue refuses.
func (m *model) rejoined(c *havocCall, got Reply) {
	if m == nil {
		return
	}
	if c.putBack = true; got != m.reply(c) {
		m.Fatalf("Rejoin: %v, want %v", got, m.reply(c))
	}
}

func (m *model) enters(c *havocCall, l Lease, v Reply) {
	if m == nil {
		return
	}
	c.entered = m.now
	switch v {
	case Granted:
		m.takes(c, l)
	case Queued:
		m.queue = append(m.queue, c)
		slices.SortStableFunc(m.queue, before)
	case Refused:
	}
}

// before says that calls put back come first and by arrival; the others stay as
// they came.
func before(a, b *havocCall) int {
	switch {
	case a.putBack && b.putBack:
		return int(a.Request.Arrived - b.Request.Arrived)
	case a.putBack:
		return -1
	case b.putBack:
		return 1
	}
	return 0
}

func (m *model) left(c *havocCall) {
	if m != nil {
		m.queue = slices.DeleteFunc(m.queue, func(x *havocCall) bool { return x == c })
	}
}

func (m *model) released(e *havocEndpoint, o Outcome, until time.Duration) {
	if m == nil {
		return
	}
	e.inFlight--
	slots := 1
	switch o {
	case OK, Faulty:
		e.refusals = 0
	case MaybeRefused: // of a method that nobody knows
		until = max(until, m.now+ms)
	case RefusedByWorker, Lost:
		until = max(until, m.now+min(ms<<min(e.refusals, 10), 250*ms))
		e.refusals++
	case NotSent:
		slots = e.slots - e.busy()
	case Failed, Cancelled:
	}
	if until > m.now && !e.removed {
		e.pauses = append(e.pauses, slices.Repeat([]time.Duration{until}, slots)...)
	}
}

// ticked checks when the next Tick is asked for.
func (m *model) ticked(next time.Duration) {
	if m == nil {
		return
	}
	for _, e := range m.endpoints {
		e.pauses = slices.DeleteFunc(e.pauses, func(u time.Duration) bool { return u <= m.now })
	}
	if next != m.earliest() {
		m.Fatalf("Tick asks for %v, want %v", next, m.earliest())
	}
	m.token, m.armed = false, next
}

// granted checks that it is the turn of whom the rank has chosen.
func (m *model) granted(c *havocCall, g Notice) {
	if m == nil {
		return
	}
	if len(m.queue) == 0 || len(m.free()) == 0 {
		m.Fatalf("a grant with %d waiting and %d endpoints free", len(m.queue), len(m.free()))
	}
	if c != m.queue[0] {
		m.Fatal("a grant for another call than the head of the queue")
	}
	m.queue = m.queue[1:]
	if c.Request.late(m.now) != (g.Reason == DeadlineExceeded) {
		m.Fatalf("reason %v with deadline %v at %v", g.Reason, c.Request.Deadline, m.now)
	}
	if g.Reason == NoReason {
		c.waited += m.now - c.entered
		m.takes(c, g.Lease)
	}
}

// takes checks that the endpoint of a new lease is the right one and puts the
// call on it.
func (m *model) takes(c *havocCall, lease Lease) {
	candidates := m.free()
	if len(candidates) > 1 {
		candidates = slices.DeleteFunc(candidates, func(e *havocEndpoint) bool { return e.Endpoint == c.Request.Avoid })
	}
	want := slices.MinFunc(candidates, func(a, b *havocEndpoint) int {
		if d := a.busy()*b.slots - b.busy()*a.slots; d != 0 {
			return d
		}
		if d := a.last - b.last; d != 0 {
			return d
		}
		return a.Index() - b.Index()
	})
	if lease.Endpoint() != want.Endpoint {
		m.Fatalf("endpoint %s, want %s", lease.Endpoint().Name(), want.Name())
	}
	if lease.Waited() != c.waited || lease.At() != m.now {
		m.Fatalf("waited %v until %v, want %v until %v", lease.Waited(), lease.At(), c.waited, m.now)
	}
	m.turn++
	want.inFlight++
	want.last = m.turn
}

func (e *havocEndpoint) busy() int { return e.inFlight + len(e.pauses) }

func (m *model) free() []*havocEndpoint {
	var free []*havocEndpoint
	for _, e := range m.endpoints {
		if e.ready && !e.suspect && e.busy() < e.slots {
			free = append(free, e)
		}
	}
	return free
}

func (m *model) earliest() time.Duration {
	first := time.Duration(0)
	for _, e := range m.endpoints {
		for _, until := range e.pauses {
			if first == 0 || until < first {
				first = until
			}
		}
	}
	return first
}

// compare checks that both sides are in the same state.
func (m *model) compare() {
	m.token = woken(m.rank) || m.token
	if first := m.earliest(); first != 0 && (m.armed == 0 || first < m.armed) && !m.token {
		m.Fatalf("a pause ends at %v, Tick is called at %v, nobody was woken", first, m.armed)
	}
	var want []EndpointState
	ready := 0
	for _, e := range m.endpoints {
		if e.ready {
			ready++
		}
		if got := m.rank.InFlight(e.Endpoint); got != e.inFlight {
			m.Fatalf("%d in flight on %s, want %d", got, e.Name(), e.inFlight)
		}
		if !e.removed {
			want = append(want, EndpointState{
				Name: e.Name(), Slots: e.slots, Limit: e.slots,
				InFlight: e.inFlight, Paused: len(e.pauses), Ready: e.ready, Suspect: e.suspect,
			})
		}
	}
	got := m.rank.Snapshot()
	for i := range got.Endpoints {
		got.Endpoints[i].Pace = 0
	}
	if !slices.Equal(got.Endpoints, want) || got.Waiting != len(m.queue) {
		m.Fatalf("rank is %+v, model is %+v with %d waiting", got, want, len(m.queue))
	}
	if m.rank.Ready() != ready || m.rank.Waiting() != len(m.queue) {
		m.Fatalf("Ready %d, Waiting %d, want %d, %d", m.rank.Ready(), m.rank.Waiting(), ready, len(m.queue))
	}
	if len(m.queue) > 0 && len(m.free()) > 0 {
		m.Fatalf("%d wait while %d endpoints have a free slot", len(m.queue), len(m.free()))
	}
}
