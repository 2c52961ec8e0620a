package rank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
				h := newHavoc(t, b, rand.New(rand.NewPCG(seed, uint64(b))))
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
	made      int // calls so far
}

type havocCall struct {
	Ticket
	*havoc
	number int
	lease  Lease
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

func newHavoc(t *testing.T, b Balance, random *rand.Rand) *havoc {
	t.Helper()
	h := &havoc{T: t, Rand: random, calls: map[*havocCall]string{}}
	h.rank = New(Options{
		QueueLength: h.IntN(40), StreamSlots: h.IntN(4), Balance: b, Random: h.Float64,
		Lanes: []LaneOptions{{Name: "admin", Priority: 5, Reserve: h.IntN(2)}, {Name: "batch", Priority: -5}},
	})
	for range 4 {
		h.add()
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

func (h *havoc) add() {
	e := h.rank.Add(fmt.Sprint("worker-", h.rank.nextIndex+1), EndpointOptions{
		Slots: 1 + h.IntN(4), OnCancel: Hold + OnCancel(h.IntN(2)), Refuses: h.IntN(2) == 0,
	})
	h.endpoints = append(h.endpoints, e)
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
	case n < 97 && h.IntN(3) > 0:
		h.reopen()
	case n < 97:
		h.reconfigure()
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
	h.made++
	c := &havocCall{havoc: h, number: h.made}
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
	var there []*havocCall
	for c, at := range h.calls {
		if at == where {
			there = append(there, c)
		}
	}
	if len(there) == 0 {
		return nil
	}
	slices.SortFunc(there, func(a, b *havocCall) int { return a.number - b.number }) // a map's order is not the seed's
	return there[h.IntN(len(there))]
}

func (h *havoc) end() {
	c := h.some("slot")
	if c == nil {
		return
	}
	outcome := OK + Outcome(h.IntN(int(NotSent)))
	lease := c.lease
	delete(h.calls, c)
	c.lease = Lease{}
	// Other shards' clocks are slightly ahead, or behind.
	now := max(h.now+time.Duration(h.IntN(3)-1)*ms, 0)
	h.deliver(h.rank.ReleaseAt(lease, outcome, now+time.Duration(h.IntN(3)-1)*ms, now, nil))
	c.Request.Avoid = lease.Endpoint()
	switch {
	case outcome == RefusedByWorker:
		l, verdict := h.rank.Rejoin(&c.Ticket, c, h.now)
		h.put(c, l, verdict)
	case outcome == Failed && h.IntN(2) == 0:
		l, verdict, _ := h.rank.Retry(&c.Ticket, c, h.now)
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
	switch n := h.IntN(12); {
	case n < 4:
		h.deliver(h.rank.SetReady(e, !e.ready, h.now, nil))
	case n < 7:
		h.deliver(h.rank.SetSuspect(e, !e.suspect, h.now, nil))
	case n < 11:
		h.deliver(h.rank.SetReady(e, true, h.now, nil))
	case len(h.endpoints) < 8: // those that are removed stay in the list
		h.add()
		h.rank.Remove(e, h.now)
		if woken(h.rank) {
			h.doTick()
		}
	}
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
	s := Settings{QueueLength: h.IntN(40), StreamSlots: h.IntN(4), Admit: BoundedLength, Order: FIFO}
	if h.IntN(2) == 0 {
		s.Admit, s.Order = nil, nil
	}
	h.deliver(h.rank.Configure(s, h.now, nil))
	weight := h.IntN(5)
	h.rank.Retune(func(key string) Terms {
		return Terms{Weight: float64(weight*len(key)) / 3, Concurrent: 10 * weight}
	}, h.now)
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
		if e.queue != nil && e.queue.waiting > 0 && (!e.up() || e.open() && r.mayHave(e.queue, h.now) != nil) {
			h.Fatalf("calls wait for %s, which is up: %v, open: %v", e.name, e.up(), e.open())
		}
	}
	if len(r.free) > 0 && r.bind == nil && r.wanted(h.now) {
		h.Fatalf("%d wait while %d endpoints have a free slot", r.Waiting(), len(r.free))
	}
	h.checkCounts()
	h.checkQueue(r.queue)
	for _, e := range r.endpoints {
		if e.queue != nil {
			h.checkQueue(e.queue)
		}
	}
}

// checkCounts compares what is counted as it changes with what is there.
func (h *havoc) checkCounts() {
	r := h.rank
	for i, e := range r.free {
		if e.freeAt != i || !e.open() {
			h.Fatalf("%s at %d among the free ones: open %v, freeAt %d", e.name, i, e.open(), e.freeAt)
		}
	}
	capacity, free := 0, 0
	for _, e := range r.up {
		capacity += e.limit
		free += max(e.limit-e.busy(), 0)
	}
	if r.capacity != capacity || r.slotsFree != free {
		h.Fatalf("%d slots, %d free, want %d and %d", r.capacity, r.slotsFree, capacity, free)
	}
	paused, ghosts := map[*Endpoint]int{}, map[*Endpoint]int{}
	for _, p := range r.pauses {
		paused[p.endpoint] += p.slots
		if p.ghostOf != nil {
			ghosts[p.endpoint]++
		}
	}
	for _, e := range r.endpoints {
		if e.open() != (e.freeAt >= 0) || e.paused != paused[e] || e.ghosts != ghosts[e] {
			h.Fatalf("%s: open %v, freeAt %d; %d paused and %d ghosts, want %d and %d",
				e.name, e.open(), e.freeAt, e.paused, e.ghosts, paused[e], ghosts[e])
		}
	}
	for i, p := range r.pauses {
		if p.until < r.pauses[(i-1)/2].until && i > 0 {
			h.Fatalf("pause %d ends before the one above it", i)
		}
	}
	type count struct{ waiting, running int }
	counts := map[*Account]count{}
	for c, where := range h.calls {
		n := counts[c.account]
		if where == "queue" {
			n.waiting++
		} else {
			n.running++
		}
		counts[c.account] = n
	}
	for a, n := range counts {
		if a.waiting != n.waiting || a.running != n.running {
			h.Fatalf("account %q has %d waiting and %d running, want %+v", a.key, a.waiting, a.running, n)
		}
	}
}

// checkQueue checks that flows are where they belong.
func (h *havoc) checkQueue(q *queue) {
	for i := range q.lanes {
		l := &q.lanes[i]
		weights, waiting := 0.0, 0
		for _, heap := range []*flowHeap{&l.modest, &l.greedy} {
			for at, f := range heap.flows {
				weights += f.account.terms.Weight
				waiting += f.waiting
				if f.at != at || f.lane != l || f.waiting == 0 || f.since != f.line.first.Request.Arrived || l.heapOf(f) != heap {
					h.Fatalf("a flow of %q in %s is not where it says: %+v", f.account.key, l.lane.name, f)
				}
				if parent := heap.flows[(at-1)/2]; at > 0 && f.before(parent) {
					h.Fatalf("a flow of %q in %s is below %q", f.account.key, l.lane.name, parent.account.key)
				}
			}
		}
		if waiting != l.waiting || math.Abs(weights-l.weights) > 1e-6 || (l.longest == nil) != (waiting == 0) {
			h.Fatalf("lane %s: %d wait with weight %v, want %d with %v", l.lane.name, l.waiting, l.weights, waiting, weights)
		}
	}
}

// finish ends everything and checks that nothing is left.
func (h *havoc) finish() {
	h.add() // all others may have been removed
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
		if l.weights != 0 || l.level.waiting != 0 || math.Abs(l.ahead) > 1 || l.running != 0 {
			h.Errorf("lane %s: %+v", l.name, l)
		}
	}
	if s := &h.rank.streams; s.early != 0 || s.old != 0 {
		h.Errorf("%d early and %d old long calls are left", s.early, s.old)
	}
}

// wanted reports whether a call waits that may have one of the free slots.
func (r *Rank) wanted(now time.Duration) bool {
	f := r.mayHave(r.queue, now)
	return f != nil && !r.forgo(f.line.first.method, now)
}

// mayHave returns a flow of which a call may have a free slot now; nil while some
// leave it to others and are to be looked at again.
func (r *Rank) mayHave(q *queue, now time.Duration) *flow {
	for i := range q.lanes {
		if flows := q.lanes[i].greedy.flows; r.again > now && slices.ContainsFunc(flows, func(f *flow) bool { return f.yields }) {
			return nil
		}
	}
	f := r.next(q, now)
	if f != nil && r.again > now && float64(f.account.running+f.account.ghosts+1) > r.share(f.account, now) {
		return nil
	}
	return f
}
