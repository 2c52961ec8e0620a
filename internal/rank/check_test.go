package rank

import (
	"math"
	"time"
)

// check compares the rank's counts with the plain ones.
func (h *havoc) check() {
	r := h.rank
	waiting, all, inFlight := 0, 0, map[*Endpoint]int{}
	for _, c := range h.calls {
		switch {
		case c.where == inLine:
			waiting++
		case c.runs():
			inFlight[c.lease.Endpoint()]++
			all++
		}
	}
	lanes, running := 0, 0
	for _, l := range r.lanes {
		lanes += l.waiting
		running += l.running
	}
	if r.Waiting() != waiting || lanes != waiting || running != all {
		h.Fatalf("%d wait (%d in lanes), %d run; want %d and %d", r.Waiting(), lanes, running, waiting, all)
	}
	for _, e := range h.endpoints {
		e := e.Endpoint
		if e.inFlight != inFlight[e] || e.paused < e.ghosts || e.inFlight > e.slots {
			h.Fatalf("%s has %d in flight, want %d; %d paused, %d ghosts", e.name, e.inFlight, inFlight[e], e.paused, e.ghosts)
		}
		if e.queue != nil && e.queue.waiting > 0 && (!e.up() || e.open() && r.mayHave(e.queue, h.now) != nil) {
			h.Fatalf("calls wait for %s, which is up: %v, open: %v", e.name, e.up(), e.open())
		}
	}
	if len(r.free) > 0 && !r.byHash && r.wanted(h.now) {
		h.Fatalf("%d wait while %d endpoints have a free slot", r.Waiting(), len(r.free))
	}
	h.checkCounts()
	h.checkCalls()
	if h.model != nil {
		h.model.compare()
	}
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
}

// checkCalls compares what is counted of accounts, levels and long calls with the calls.
func (h *havoc) checkCalls() {
	type count struct{ waiting, running int }
	accounts, weights := map[*Account]count{}, map[*level]map[*Account]float64{}
	for _, l := range h.rank.levels {
		weights[l] = map[*Account]float64{}
	}
	streams, old, early := &h.rank.streams, 0, 0
	for _, c := range h.calls {
		n := accounts[c.account]
		switch {
		case c.where == inLine:
			n.waiting++
			weights[c.lane.level][c.account] = c.account.terms.Weight
		case !c.runs():
			continue
		case streams.second-secondOf(c.lease.At()) >= agedSeconds:
			old++
			n.running++
		default:
			if c.early {
				early++
			}
			n.running++
		}
		accounts[c.account] = n
	}
	for a, n := range accounts {
		if a.waiting != n.waiting || a.running != n.running {
			h.Fatalf("account %q has %d waiting and %d running, want %+v", a.key, a.waiting, a.running, n)
		}
	}
	for l, of := range weights {
		sum := 0.0
		for _, w := range of {
			sum += w
		}
		if l.waiting != len(of) || math.Abs(l.weights-sum) > 1e-6 {
			h.Fatalf("priority %d: %d accounts wait with weight %v, want %d with %v", l.priority, l.waiting, l.weights, len(of), sum)
		}
	}
	if streams.old != old || streams.early != early {
		h.Fatalf("%d old and %d early long calls, want %d and %d", streams.old, streams.early, old, early)
	}
}

// runs reports whether a call has a lease, of which it may not know yet.
func (c *havocCall) runs() bool { return c.where == onSlot || c.where == onWay && c.lease.Valid() }

// checkQueue checks that flows are where they belong.
func (h *havoc) checkQueue(q *queue) {
	for i := range q.lanes {
		l := &q.lanes[i]
		weights, waiting := 0.0, 0
		for _, heap := range []*flowHeap{&l.modest, &l.greedy} {
			for at, f := range heap.flows {
				weights += f.account.terms.Weight
				waiting += f.waiting
				if f.at != at || f.lane != l || f.waiting == 0 || f.since != f.list.first.Request.Arrived || l.heapOf(f) != heap {
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

// checkEmpty checks that nothing is left.
func (h *havoc) checkEmpty() {
	r := h.rank
	if r.Waiting() > 0 {
		h.Errorf("%d calls wait", r.Waiting())
	}
	for _, a := range h.accounts {
		if a != nil {
			if a.running != 0 || a.waiting != 0 || a.queued != 0 || a.expected != 0 || a.starts != 0 {
				h.Errorf("account %s: %+v", a.key, a)
			}
			r.Close(a)
		}
	}
	for _, e := range h.endpoints {
		if e.Endpoint.busy() != 0 || e.ghosts != 0 {
			h.Errorf("%s: %d in flight, %d paused", e.name, e.Endpoint.inFlight, e.paused)
		}
	}
	for _, l := range r.lanes {
		if l.weights != 0 || l.level.waiting != 0 || math.Abs(l.ahead) > 1 || l.running != 0 {
			h.Errorf("lane %s: %+v", l.name, l)
		}
	}
	if s := &r.streams; s.early != 0 || s.old != 0 {
		h.Errorf("%d early and %d old long calls are left", s.early, s.old)
	}
}

// wanted reports whether a call waits that may have one of the free slots.
func (r *Rank) wanted(now time.Duration) bool {
	f := r.mayHave(r.queue, now)
	return f != nil && !r.betterToWait(f.list.first.method, now)
}

// mayHave returns a flow of which a call may have a free slot now; nil while some
// leave it to others and are to be looked at again.
func (r *Rank) mayHave(q *queue, now time.Duration) *flow {
	yields := false
	q.eachFlow(func(f *flow) { yields = yields || f.yields })
	if yields && r.again > now {
		return nil
	}
	f := r.next(q, now)
	if f != nil && r.again > now && float64(f.account.running+f.account.ghosts+1) > min(r.fairShare(f.account, now), float64(r.capacity-1)) {
		return nil
	}
	return f
}
