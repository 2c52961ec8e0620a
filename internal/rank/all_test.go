package rank

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Random operations with everything on, under every policy: accounts with
// terms, lanes, methods of all kinds, deadlines, ghosts, refusals, endpoints
// that come and go. No slot is over-used, nobody is forgotten or told twice,
// nobody waits who could run, and in the end nothing is left.
func TestRankWithEverything(t *testing.T) {
	t.Parallel()
	seeds, steps := uint64(10), 3000
	if testing.Short() {
		seeds = 2
	}
	for b := range balances {
		for seed := range seeds {
			t.Run(fmt.Sprint(b, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				h := newHavoc(t, b, seed)
				for range steps {
					h.step()
					h.check()
				}
				h.finish()
			})
		}
	}
}

// havoc drives a rank at random and keeps its own count of who is where.
type havoc struct {
	*testing.T
	*rand.Rand
	rank      *Rank
	now       time.Duration
	endpoints []*Endpoint
	accounts  []*Account
	methods   []*Method
	calls     map[*havocCall]string // "queue" or "slot"
	tick      time.Duration
}

type havocCall struct {
	Ticket
	*havoc
	lease Lease
}

func (c *havocCall) Granted(l Lease) {
	if c.calls[c] != "queue" {
		c.Fatalf("a call that is %q was granted a lease", c.calls[c])
	}
	c.lease, c.calls[c] = l, "slot"
}

func (c *havocCall) Refused(r Reason) {
	if c.calls[c] != "queue" {
		c.Fatalf("a call that is %q was refused: %v", c.calls[c], r)
	}
	delete(c.calls, c)
}

func newHavoc(t *testing.T, b Balance, seed uint64) *havoc {
	h := &havoc{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(b))), calls: map[*havocCall]string{}}
	h.rank = New(Options{
		QueueLength: h.IntN(40), StreamSlots: h.IntN(4), Balance: b, Random: h.Float64,
		Lanes: []LaneOptions{{Name: "admin", Priority: 5, Reserve: h.IntN(2)}, {Name: "batch", Priority: -5}},
	})
	for i := range 4 {
		e := h.rank.Add(fmt.Sprint("worker-", i+1), EndpointOptions{
			Slots: 1 + h.IntN(4), OnCancel: Hold + OnCancel(h.IntN(2)), Refuses: h.IntN(2) == 0,
		})
		h.endpoints = append(h.endpoints, e)
	}
	h.accounts = []*Account{nil}
	for i := range 5 {
		terms := Terms{Weight: float64(i), Concurrent: 10 * i}
		h.accounts = append(h.accounts, h.rank.Open(fmt.Sprint("key-", i), terms))
	}
	h.methods = []*Method{nil}
	for i := range 4 {
		h.methods = append(h.methods, h.rank.Method(fmt.Sprint("/a.B/", i)))
	}
	return h
}

func (h *havoc) step() {
	h.now += time.Duration(h.ExpFloat64() * float64(20*ms))
	if h.IntN(300) == 0 {
		h.now += time.Duration(h.IntN(20)) * time.Second
	}
	switch n := h.IntN(100); {
	case n < 45:
		h.arrive()
	case n < 85:
		h.end()
	case n < 92:
		h.leave()
	case n < 96:
		h.turn()
	default:
		h.doTick()
	}
	if h.tick != 0 && h.now >= h.tick {
		h.doTick()
	}
	if woken(h.rank) {
		h.doTick()
	}
}

func (h *havoc) doTick() {
	var grants []Grant
	grants, h.tick = h.rank.Tick(h.now, nil)
	h.deliver(grants)
}

func (h *havoc) deliver(grants []Grant) {
	for _, g := range grants {
		g.Deliver()
	}
}

func (h *havoc) arrive() {
	c := &havocCall{havoc: h}
	c.Request = Request{
		Account: h.accounts[h.IntN(len(h.accounts))], Method: h.methods[h.IntN(len(h.methods))],
		Lane: uint8(h.IntN(4)), Arrived: h.now, Hash: h.Uint64(), Until: h.now + 5*time.Second,
	}
	if h.IntN(2) == 0 {
		c.Request.Deadline = h.now + time.Duration(h.IntN(2000))*ms
	}
	if h.IntN(20) == 0 {
		if lease, ok := h.rank.AcquireFree(&c.Ticket, h.now); ok {
			c.lease, h.calls[c] = lease, "slot"
		}
		return
	}
	lease, verdict, _ := h.rank.Acquire(&c.Ticket, c, h.now)
	h.put(c, lease, verdict)
}

func (h *havoc) put(c *havocCall, lease Lease, verdict Verdict) {
	switch verdict {
	case Granted:
		c.lease, h.calls[c] = lease, "slot"
	case Queued:
		h.calls[c] = "queue"
	case Refused:
		delete(h.calls, c)
	}
}

// some returns a call that is where, or nil.
func (h *havoc) some(where string) *havocCall {
	var found *havocCall
	for c, at := range h.calls { // the earliest, for the order of a map is not the seed's
		if at == where && (found == nil || c.turnOrArrival() < found.turnOrArrival()) {
			found = c
		}
	}
	return found
}

func (c *havocCall) turnOrArrival() time.Duration {
	if c.lease.Valid() {
		return time.Duration(c.lease.turn)
	}
	return c.Request.Arrived
}

func (h *havoc) end() {
	c := h.some("slot")
	if c == nil {
		return
	}
	outcome := OK + Outcome(h.IntN(int(Faulty)))
	lease := c.lease
	delete(h.calls, c)
	c.lease = Lease{}
	h.deliver(h.rank.Release(lease, outcome, h.now, nil))
	if outcome == RefusedByWorker {
		c.Request.Avoid = lease.Endpoint()
		l, verdict := h.rank.Rejoin(&c.Ticket, c, h.now)
		h.put(c, l, verdict)
	}
}

func (h *havoc) leave() {
	if c := h.some("queue"); c != nil && h.rank.Leave(&c.Ticket) {
		delete(h.calls, c)
	}
}

func (h *havoc) turn() {
	e := h.endpoints[h.IntN(len(h.endpoints))]
	switch h.IntN(3) {
	case 0:
		h.deliver(h.rank.SetReady(e, !e.ready, h.now, nil))
	case 1:
		h.deliver(h.rank.SetSuspect(e, !e.suspect, h.now, nil))
	case 2:
		h.deliver(h.rank.SetReady(e, true, h.now, nil))
	}
}

// check compares the rank's counts with the plain ones.
func (h *havoc) check() {
	r := h.rank
	waiting, inFlight := 0, map[*Endpoint]int{}
	for c, where := range h.calls {
		if where == "queue" {
			waiting++
		} else {
			inFlight[c.lease.Endpoint()]++
		}
	}
	lanes, running := 0, 0
	for _, l := range r.lanes {
		lanes += l.waiting
		running += l.running
	}
	if r.Waiting() != waiting+len(r.dropped) && r.Waiting() != waiting || lanes != r.Waiting() || running != len(h.calls)-waiting {
		h.Fatalf("%d wait (%d in lanes), %d run; want %d and %d", r.Waiting(), lanes, running, waiting, len(h.calls)-waiting)
	}
	for _, e := range h.endpoints {
		if e.inFlight != inFlight[e] || e.paused < e.ghosts || e.inFlight > e.slots {
			h.Fatalf("%s has %d in flight, want %d; %d paused, %d ghosts", e.name, e.inFlight, inFlight[e], e.paused, e.ghosts)
		}
		if e.queue != nil && e.queue.waiting > 0 && (!e.up() || e.open() && r.next(e.queue, h.now) != nil) {
			h.Fatalf("calls wait for %s, which is up: %v, open: %v", e.name, e.up(), e.open())
		}
	}
	if len(r.free) > 0 && r.bind == nil && r.next(r.queue, h.now) != nil {
		h.Fatalf("%d wait while %d endpoints have a free slot", r.Waiting(), len(r.free))
	}
}

// finish ends everything and checks that nothing is left.
func (h *havoc) finish() {
	for _, e := range h.endpoints {
		h.deliver(h.rank.SetReady(e, true, h.now, nil))
	}
	for range 100_000 {
		if len(h.calls) == 0 {
			break
		}
		h.now += 100 * ms
		if c := h.some("slot"); c != nil {
			delete(h.calls, c)
			h.deliver(h.rank.Release(c.lease, OK, h.now, nil))
		}
		h.doTick()
	}
	h.now += time.Minute
	h.doTick()
	if len(h.calls) > 0 || h.rank.Waiting() > 0 {
		h.Fatalf("%d calls are left, %d wait", len(h.calls), h.rank.Waiting())
	}
	for _, a := range h.accounts {
		if a != nil {
			if a.running != 0 || a.waiting != 0 || a.queued != 0 || a.expected != 0 || a.starts != 0 {
				h.Errorf("account %s: %+v", a.key, a)
			}
			h.rank.Close(a)
		}
	}
	for _, e := range h.endpoints {
		if e.busy() != 0 || e.ghosts != 0 {
			h.Errorf("%s: %d in flight, %d paused", e.name, e.inFlight, e.paused)
		}
	}
	for _, l := range h.rank.lanes {
		if l.weights != 0 || l.running != 0 {
			h.Errorf("lane %s: %+v", l.name, l)
		}
	}
	if s := &h.rank.streams; s.early != 0 || s.old != 0 {
		h.Errorf("%d early and %d old long calls are left", s.early, s.old)
	}
}
