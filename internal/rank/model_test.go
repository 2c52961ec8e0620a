package rank

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Random operations against a plain model that keeps everything in slices:
// no slot is over-used, the queue is served in order, no waiter is forgotten or
// told twice, every lease ends once, pauses follow R1, and a Tick is asked for
// whenever one is needed.
func TestRankAgreesWithModel(t *testing.T) {
	t.Parallel()
	seeds, steps := uint64(60), 2000
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, rand.New(rand.NewPCG(seed, 21)))
			for range steps {
				m.step()
				m.compare()
			}
			m.finish()
		})
	}
}

type model struct {
	*testing.T
	*rand.Rand
	rank *Rank
	now  time.Duration

	limit     int
	endpoints []*modelEndpoint // by index, removed ones too
	calls     []*modelCall
	queue     []*modelCall // head first
	onTheWay  []Grant      // returned, not yet delivered
	token     bool         // Wake has spoken since the last Tick
	armed     time.Duration
}

type modelEndpoint struct {
	*Endpoint
	slots, inFlight, refusals int
	ready, suspect, removed   bool
	pauses                    []time.Duration
	last                      int // number of the last lease
}

type modelCall struct {
	*model
	Ticket
	where    string // "idle", "queue", "granted" (lease on the way), "slot"
	lease    Lease
	putBack  bool
	entered  time.Duration
	waited   time.Duration
	toldOnce bool
}

func newModel(t *testing.T, random *rand.Rand) *model {
	t.Helper()
	m := &model{T: t, Rand: random, limit: random.IntN(12)}
	m.rank = New(Options{QueueLength: m.limit, Order: FIFO, Admit: BoundedLength, Choose: LeastLoaded})
	for range 1 + m.IntN(4) {
		m.add()
	}
	for range 30 {
		m.calls = append(m.calls, &modelCall{model: m, where: "idle"})
	}
	return m
}

func (m *model) add() {
	e := &modelEndpoint{slots: 1 + m.IntN(4)}
	e.Endpoint = m.rank.Add(fmt.Sprint("worker-", len(m.endpoints)+1), EndpointOptions{Slots: e.slots, OnCancel: Free})
	if e.Index() != len(m.endpoints) {
		m.Fatalf("index %d, want %d", e.Index(), len(m.endpoints))
	}
	m.endpoints = append(m.endpoints, e)
}

// step does one random operation on both sides.
func (m *model) step() {
	m.now += time.Duration(m.IntN(800)) * time.Microsecond
	call := m.calls[m.IntN(len(m.calls))]
	switch n := m.IntN(100); {
	case n < 75:
		call.advance()
	case n < 80:
		m.deliver()
	case n < 90:
		m.tick()
	case n < 95:
		e := m.endpoints[m.IntN(len(m.endpoints))]
		m.setReady(e, m.IntN(3) > 0)
	case n < 97:
		e := m.endpoints[m.IntN(len(m.endpoints))]
		m.setSuspect(e, m.IntN(3) == 0)
	case n < 98:
		m.remove(m.endpoints[m.IntN(len(m.endpoints))])
	case len(m.endpoints) < 12:
		m.add()
	}
}

// advance does what a call in this state may do next.
func (c *modelCall) advance() {
	switch c.where {
	case "idle":
		c.acquire()
	case "queue", "granted":
		if c.IntN(4) == 0 {
			c.leave()
		}
	case "slot":
		c.release(Outcome(1+c.IntN(4)), c.now+time.Duration(c.IntN(3)-1)*ms)
	}
}

func (c *modelCall) acquire() {
	c.Request = Request{Arrived: c.now}
	if c.IntN(3) == 0 {
		c.Request.Deadline = c.now + time.Duration(c.IntN(20))*ms
	}
	c.putBack, c.waited, c.toldOnce = false, 0, false
	want, why := Queued, NoReason
	switch {
	case c.Request.late(c.now):
		want, why = Refused, DeadlineExceeded
	case len(c.queue) == 0 && len(c.free()) > 0:
		want = Granted
	case len(c.queue) >= c.limit:
		want, why = Refused, QueueFull
	}
	lease, got, reason := c.rank.Acquire(&c.Ticket, c, c.now)
	if got != want || reason != why {
		c.Fatalf("Acquire: %v, %v, want %v, %v", got, reason, want, why)
	}
	c.entersAs(got, lease)
}

// rejoin puts the call back, avoiding the endpoint it comes from.
func (c *modelCall) rejoin() {
	c.Request.Avoid = c.lease.Endpoint()
	c.putBack = true
	want := Queued
	switch {
	case c.Request.late(c.now):
		want = Refused
	case len(c.queue) == 0 && len(c.free()) > 0:
		want = Granted
	}
	lease, got := c.rank.Rejoin(&c.Ticket, c, c.now)
	if got != want {
		c.Fatalf("Rejoin: %v, want %v", got, want)
	}
	c.entersAs(got, lease)
}

func (c *modelCall) entersAs(v Verdict, lease Lease) {
	c.entered, c.toldOnce = c.now, false
	switch v {
	case Granted:
		c.takes(lease)
		c.where = "slot"
	case Queued:
		c.where = "queue"
		c.queue = append(c.queue, c)
		slices.SortStableFunc(c.queue, before)
	case Refused:
		c.where = "idle"
	}
}

// before says that calls put back come first and by arrival; the others stay as
// they came.
func before(a, b *modelCall) int {
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

func (c *modelCall) leave() {
	if got := c.rank.Leave(&c.Ticket); got != (c.where == "queue") {
		c.Fatalf("Leave: %v of a call in state %q", got, c.where)
	}
	if c.where == "queue" {
		i := slices.Index(c.queue, c)
		c.queue = slices.Delete(c.queue, i, i+1)
		c.where = "idle"
	}
}

func (c *modelCall) release(o Outcome, until time.Duration) {
	e := c.endpoints[c.lease.Endpoint().Index()]
	e.inFlight--
	switch o {
	case OK:
		e.refusals = 0
	case RefusedByWorker, Lost:
		until = max(until, c.now+min(ms<<min(e.refusals, 10), 250*ms))
		e.refusals++
	case Failed, Cancelled, Faulty, NotSent, MaybeRefused:
	}
	if until > c.now && !e.removed {
		e.pauses = append(e.pauses, until)
	}
	c.where = "idle"
	c.granted(c.rank.ReleaseAt(c.lease, o, until, c.now, nil))
	if o == RefusedByWorker {
		c.rejoin()
	}
}

func (m *model) tick() {
	for _, e := range m.endpoints {
		e.pauses = slices.DeleteFunc(e.pauses, func(u time.Duration) bool { return u <= m.now })
	}
	woken(m.rank)
	m.token = false
	grants, next := m.rank.Tick(m.now, nil)
	m.granted(grants)
	if next != m.earliest() {
		m.Fatalf("Tick asks for %v, want %v", next, m.earliest())
	}
	m.armed = next
}

func (m *model) setReady(e *modelEndpoint, ready bool) {
	if !e.removed && ready && !e.ready {
		e.pauses, e.refusals = nil, 0
	}
	if !e.removed && ready != e.ready {
		e.ready, e.suspect = ready, false
	}
	m.granted(m.rank.SetReady(e.Endpoint, ready, m.now, nil))
}

func (m *model) setSuspect(e *modelEndpoint, suspect bool) {
	e.suspect = suspect && e.ready
	m.granted(m.rank.SetSuspect(e.Endpoint, suspect, m.now, nil))
}

func (m *model) remove(e *modelEndpoint) {
	e.ready, e.suspect, e.removed, e.pauses = false, false, true, nil
	m.rank.Remove(e.Endpoint, m.now)
}

// granted checks the grants that an operation made against the model's queue.
func (m *model) granted(grants []Grant) {
	for _, g := range grants {
		if len(m.queue) == 0 || len(m.free()) == 0 {
			m.Fatalf("a grant with %d waiting and %d endpoints free", len(m.queue), len(m.free()))
		}
		head := m.queue[0]
		m.queue = m.queue[1:]
		if g.Waiter != Waiter(head) {
			m.Fatal("a grant for another call than the head of the queue")
		}
		head.where = "granted"
		if head.Request.late(m.now) != (g.Reason == DeadlineExceeded) {
			m.Fatalf("reason %v with deadline %v at %v", g.Reason, head.Request.Deadline, m.now)
		}
		if g.Reason == NoReason {
			head.waited += m.now - head.entered
			head.takes(g.Lease)
		}
	}
	m.onTheWay = append(m.onTheWay, grants...)
}

// takes checks that the endpoint of a new lease is the right one and puts the
// call on it.
func (c *modelCall) takes(lease Lease) {
	candidates := c.free()
	if len(candidates) > 1 {
		candidates = slices.DeleteFunc(candidates, func(e *modelEndpoint) bool { return e.Endpoint == c.Request.Avoid })
	}
	want := slices.MinFunc(candidates, func(a, b *modelEndpoint) int {
		if d := a.busy()*b.slots - b.busy()*a.slots; d != 0 {
			return d
		}
		if d := a.last - b.last; d != 0 {
			return d
		}
		return a.Index() - b.Index()
	})
	if lease.Endpoint() != want.Endpoint {
		c.Fatalf("endpoint %s, want %s", lease.Endpoint().Name(), want.Name())
	}
	if lease.Waited() != c.waited || lease.At() != c.now {
		c.Fatalf("waited %v until %v, want %v until %v", lease.Waited(), lease.At(), c.waited, c.now)
	}
	want.inFlight++
	want.last = c.leases()
	c.lease = lease
}

// leases returns a number that grows with each call of it.
func (m *model) leases() int {
	n := 0
	for _, e := range m.endpoints {
		n = max(n, e.last)
	}
	return n + 1
}

// Granted and Refused make a modelCall a Waiter.
func (c *modelCall) Granted(l Lease) { c.told(l, "slot") }

func (c *modelCall) Refused(Reason) { c.told(Lease{}, "idle") }

func (c *modelCall) told(l Lease, where string) {
	if c.where != "granted" || c.toldOnce || l.Valid() && l != c.lease {
		c.Fatalf("a call in state %q was told (before: %v)", c.where, c.toldOnce)
	}
	c.toldOnce = true
	c.where = where
}

func (m *model) deliver() {
	for _, g := range m.onTheWay {
		g.Deliver()
	}
	m.onTheWay = nil
}

func (e *modelEndpoint) busy() int { return e.inFlight + len(e.pauses) }

func (m *model) free() []*modelEndpoint {
	var free []*modelEndpoint
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

// finish serves everyone who is left and checks that nothing remains.
func (m *model) finish() {
	m.add()
	m.setReady(m.endpoints[len(m.endpoints)-1], true)
	for busy := true; busy; {
		m.now += time.Second
		m.tick()
		m.deliver()
		busy = len(m.queue) > 0
		for _, c := range m.calls {
			if c.where == "slot" {
				busy = true
				c.release(OK, m.now)
			}
			m.compare()
		}
	}
	for i, c := range m.calls {
		if c.where != "idle" {
			m.Errorf("call %d is left in state %q", i, c.where)
		}
	}
	for _, e := range m.endpoints {
		if e.inFlight != 0 {
			m.Errorf("%d leases are left on %s", e.inFlight, e.Name())
		}
	}
}
