package rank

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// havoc does at random to a rank whatever may be done to it, as the owner of some
// calls (R23), and knows where each of them is. What it does next comes from one
// stream of numbers: that of a seed, or the bytes of a fuzzer.
type havoc struct {
	*testing.T
	*rand.Rand
	*house
	model   *model // nil: the house has policies that the model does not know
	calls   []*havocCall
	mailbox chan letter // what calls are told, with a place for each, so that nobody blocks
	now     time.Duration
	gap     time.Duration // between two steps, on average
	tick    time.Duration // when the rank wants its next Tick
	ends    int           // leases released so far
}

// house is a rank and what calls refer to. Several owners may share one; then
// only one of them changes it.
type house struct {
	rank      *Rank
	endpoints []*havocEndpoint // by index, removed ones too
	accounts  []*Account
	methods   []*Method
	shared    bool
}

type havocEndpoint struct {
	*Endpoint
	running atomic.Int64 // calls that know of their leases

	// What the model has of it.
	inFlight, refusals      int
	ready, suspect, removed bool
	pauses                  []time.Duration
	last                    int // number of the last lease
}

type havocCall struct {
	Ticket
	*havoc
	where whereabouts
	lease Lease

	// What the model has of it.
	putBack bool
	entered time.Duration
	waited  time.Duration
}

type whereabouts string

const (
	nowhere whereabouts = "nowhere"
	inLine  whereabouts = "in line"
	onWay   whereabouts = "granted or refused, and not told yet"
	onSlot  whereabouts = "on a slot"
)

// letter is what one call is told.
type letter struct {
	call   *havocCall
	lease  Lease
	reason Reason
}

func (c *havocCall) Granted(l Lease)  { c.mailbox <- letter{call: c, lease: l} }
func (c *havocCall) Refused(r Reason) { c.mailbox <- letter{call: c, reason: r} }

// newHouse returns a rank with everything on.
func newHouse(random *rand.Rand, byHash bool, endpoints int) *house {
	h := &house{accounts: []*Account{nil}, methods: []*Method{nil}}
	h.rank = New(Options{
		QueueLength: random.IntN(40), StreamSlots: random.IntN(4), ByHash: byHash,
		Lanes: []LaneOptions{{Name: "admin", Priority: 5, Reserve: random.IntN(2)}, {Name: "batch", Priority: -5}},
	})
	for range endpoints {
		h.add(EndpointOptions{Slots: 1 + random.IntN(4), OnCancel: Hold + OnCancel(random.IntN(2))})
	}
	for i := range 5 {
		terms := Terms{Weight: float64(i), Concurrent: 10 * i}
		h.accounts = append(h.accounts, h.rank.Open(fmt.Sprint("key-", i), terms))
	}
	for i := range 4 {
		h.methods = append(h.methods, h.rank.Method(fmt.Sprint("/a.B/", i)))
	}
	return h
}

func (h *house) add(o EndpointOptions) *havocEndpoint {
	e := &havocEndpoint{Endpoint: h.rank.Add(fmt.Sprint("worker-", len(h.endpoints)+1), o)}
	if e.Index() != len(h.endpoints) {
		broken("an index that is not the next one")
	}
	h.endpoints = append(h.endpoints, e)
	return e
}

// owner returns the owner of so many calls.
func (h *house) owner(t *testing.T, random *rand.Rand, calls int) *havoc {
	t.Helper()
	o := &havoc{T: t, Rand: random, house: h, mailbox: make(chan letter, calls), gap: 20 * ms}
	for range calls {
		o.calls = append(o.calls, &havocCall{havoc: o, where: nowhere})
	}
	return o
}

// step does one thing, some time after the last one.
func (h *havoc) step() {
	h.now += time.Duration(h.ExpFloat64() * float64(h.gap))
	if h.IntN(300) == 0 {
		h.now += time.Duration(h.IntN(1000)) * h.gap
	}
	switch n := h.IntN(100); {
	case n < 80:
		h.advance(n)
	case n < 87:
		h.read()
	case n < 92:
		h.doTick()
	case n < 98:
		h.turn()
	case n < 99 || h.model != nil:
		h.replace()
	case h.IntN(3) > 0:
		h.reopen()
	default:
		h.reconfigure()
	}
	// A Tick may be late; but only the model knows who could run meanwhile.
	if h.model == nil && (h.tick != 0 && h.now >= h.tick || woken(h.rank)) {
		h.doTick()
	}
}

// advance has a call do what it may do next; n is below 80.
func (h *havoc) advance(n int) {
	switch c := h.some(nowhere); {
	case n < 40 && c != nil && n > 1:
		c.acquire()
	case n < 40 && c != nil:
		c.acquireFree()
	case n < 74:
		if c := h.some(onSlot); c != nil {
			c.end(OK + Outcome(h.IntN(int(Lost))))
		}
	case n < 78:
		if c := h.some(inLine); c != nil {
			c.leave()
		}
	default:
		h.calls[h.IntN(len(h.calls))].leave()
	}
}

// some returns a call that is there, or nil.
func (h *havoc) some(where whereabouts) *havocCall {
	var there []*havocCall
	for _, c := range h.calls {
		if c.where == where {
			there = append(there, c)
		}
	}
	if len(there) == 0 {
		return nil
	}
	return there[h.IntN(len(there))]
}

func (c *havocCall) acquire() {
	c.arrives()
	lease, reply, reason := c.rank.Acquire(&c.Ticket, c, c.now)
	c.model.acquired(c, reply, reason)
	c.enters(lease, reply)
}

func (c *havocCall) acquireFree() {
	c.arrives()
	if c.IntN(2) == 0 { // beside a call that runs there
		c.Request.Avoid = c.endpoints[c.IntN(len(c.endpoints))].Endpoint
	}
	lease, ok := c.rank.AcquireFree(&c.Ticket, c.now)
	c.model.acquiredFree(c, ok)
	if ok {
		c.enters(lease, Granted)
	}
}

// arrives makes the request of a new call.
func (c *havocCall) arrives() {
	c.Request = Request{
		Account: c.accounts[c.IntN(len(c.accounts))], Method: c.methods[c.IntN(len(c.methods))],
		Lane: uint8(c.IntN(4)), Arrived: c.now, Hash: c.Uint64(), Until: c.now + 250*c.gap,
	}
	if c.IntN(2) == 0 {
		c.Request.Deadline = c.now + time.Duration(c.IntN(100))*c.gap
	}
	c.putBack, c.waited = false, 0
}

// enters notes the rank's answer.
func (c *havocCall) enters(l Lease, v Reply) {
	c.model.enters(c, l, v)
	switch v {
	case Granted:
		c.holds(l)
	case Queued:
		c.where = inLine
	case Refused:
		c.where = nowhere
	}
}

func (c *havocCall) holds(l Lease) {
	c.lease, c.where = l, onSlot
	if e := c.endpoints[l.Endpoint().Index()]; int(e.running.Add(1)) > e.slots {
		c.Errorf("%d calls on %s, which has %d slots", e.running.Load(), e.name, e.slots)
	}
}

// end releases the lease. What a worker refused or failed comes back.
func (c *havocCall) end(o Outcome) {
	// Other shards' clocks are slightly ahead, or behind.
	now := c.now
	if c.model == nil {
		now = max(now+time.Duration(c.IntN(3)-1)*ms, 0)
	}
	until := now + time.Duration(c.IntN(3)-1)*ms
	e := c.endpoints[c.lease.Endpoint().Index()]
	c.where, c.Request.Avoid = nowhere, e.Endpoint
	e.running.Add(-1)
	c.ends++
	c.model.released(e, o, until)
	c.took(c.rank.ReleaseAt(c.lease, o, until, now, nil))
	switch {
	case o == RefusedByWorker:
		l, reply := c.rank.Rejoin(&c.Ticket, c, c.now)
		c.model.rejoined(c, reply)
		c.enters(l, reply)
	case o == Failed && c.IntN(2) == 0:
		l, reply, reason := c.rank.Retry(&c.Ticket, c, c.now)
		c.model.acquired(c, reply, reason)
		c.enters(l, reply)
	}
}

func (c *havocCall) leave() {
	left := c.rank.Leave(&c.Ticket)
	if !c.shared && left != (c.where == inLine) {
		c.Fatalf("Leave: %v of a call that is %s", left, c.where)
	}
	if left {
		c.model.left(c)
		c.where = nowhere
	}
}

// took passes on the notices that something has made.
func (h *havoc) took(notices []Notice) {
	for _, g := range notices {
		if !h.shared { // else the call is somebody else's
			c := g.Waiter.(*havocCall)
			if c.where != inLine {
				h.Fatalf("a call that is %s was granted a lease, or refused for %v", c.where, g.Reason)
			}
			h.model.granted(c, g)
			c.where, c.lease = onWay, g.Lease
		}
		g.Deliver()
	}
}

// read opens what is in the mailbox.
func (h *havoc) read() {
	for len(h.mailbox) > 0 {
		h.open(<-h.mailbox)
	}
}

func (h *havoc) open(l letter) {
	c, want := l.call, onWay
	if h.shared {
		want = inLine
	}
	if c.where != want || !h.shared && l.lease != c.lease {
		h.Fatalf("a call that is %s was told: %v", c.where, l.reason)
	}
	if c.where = nowhere; l.reason == NoReason {
		c.holds(l.lease)
	}
}

func (h *havoc) doTick() {
	woken(h.rank)
	notices, next := h.rank.Tick(h.now, nil)
	h.model.ticked(next)
	h.took(notices)
	h.tick = next
}

// turn has an endpoint become ready or not, or suspect.
func (h *havoc) turn() {
	e := h.endpoints[h.IntN(len(h.endpoints))]
	switch n := h.IntN(12); {
	case n < 3:
		h.setReady(e, !e.ready)
	case n < 6:
		suspect := !e.suspect
		e.suspect = e.ready && suspect // there is no suspicion of an endpoint that is not ready
		h.took(h.rank.SetSuspect(e.Endpoint, suspect, h.now, nil))
	default:
		h.setReady(e, true)
	}
}

func (h *havoc) setReady(e *havocEndpoint, ready bool) {
	if !e.removed && ready != e.ready {
		e.ready, e.suspect = ready, false
		if ready {
			e.pauses, e.refusals = nil, 0
		}
	}
	h.took(h.rank.SetReady(e.Endpoint, ready, h.now, nil))
}

// replace removes an endpoint and brings in another one, up to 16 in all.
func (h *havoc) replace() {
	if len(h.endpoints) == 16 {
		return
	}
	h.bring()
	e := h.endpoints[h.IntN(len(h.endpoints))]
	e.ready, e.suspect, e.removed, e.pauses = false, false, true, nil
	h.rank.Remove(e.Endpoint, h.now)
}

// bring adds an endpoint. The model knows no ghosts, and none that say when they
// are full.
func (h *havoc) bring() {
	o := EndpointOptions{Slots: 1 + h.IntN(4), OnCancel: Free}
	if h.model == nil {
		o.OnCancel = Hold + OnCancel(h.IntN(2))
	}
	h.add(o)
}

// reopen has a caller go and come back, while calls of its may be there.
func (h *havoc) reopen() {
	i := 1 + h.IntN(len(h.accounts)-1)
	a := h.accounts[i]
	h.rank.Close(a)
	h.accounts[i] = h.rank.Open(a.key, a.terms)
}

// reconfigure has the operator change what may change.
func (h *havoc) reconfigure() {
	s := Options{QueueLength: h.IntN(40), StreamSlots: h.IntN(4), Admit: BoundedLength, Order: FIFO}
	if h.IntN(2) == 0 {
		s.Admit, s.Order = nil, nil
	}
	h.took(h.rank.Configure(s, h.now, nil))
	weight := h.IntN(5)
	h.rank.Retune(func(key string) Terms {
		return Terms{Weight: float64(weight*len(key)) / 3, Concurrent: 10 * weight}
	}, h.now)
}

// finish has every call come to its end.
func (h *havoc) finish() {
	h.bring() // all others may have been removed
	for _, e := range h.endpoints {
		h.setReady(e, true)
	}
	for left := 1; left > 0; {
		h.now += 100 * ms
		h.doTick()
		h.read()
		left = 0
		for _, c := range h.calls {
			if c.where == onSlot {
				c.end(OK)
			}
			if c.where != nowhere {
				left++
			}
		}
		if h.now > 200*time.Hour {
			h.Fatalf("%d calls are left, %d wait", left, h.rank.Waiting())
		}
	}
	h.now += time.Minute
	h.doTick()
	h.checkEmpty()
}
