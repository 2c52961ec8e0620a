package rank

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// binder picks an endpoint for a new call, whether the endpoint has a free slot or
// not.
//
// Shape: up holds at least one endpoint.
type binder func(q *Request, up []*Endpoint, now time.Duration) *Endpoint

// newBinder returns the binder of a policy; nil for LateBinding.
func newBinder(b Balance, random func() float64) binder {
	switch b {
	case Random:
		return func(_ *Request, up []*Endpoint, _ time.Duration) *Endpoint { return up[chance(random, len(up))] }
	case RoundRobin:
		return (&roundRobin{last: -1}).bind
	case LeastRequest:
		return leastRequest
	case P2C:
		return twoOf(random, func(a, b *Endpoint, _ time.Duration) bool { return fewerCalls(a, b) })
	case PeakEWMA:
		return twoOf(random, func(a, b *Endpoint, now time.Duration) bool {
			return a.latency.cost(a.calls(), now) < b.latency.cost(b.calls(), now)
		})
	case RingHash:
		return new(ring).bind
	default:
		return nil
	}
}

func chance(random func() float64, n int) int { return min(int(random()*float64(n)), n-1) }

// calls counts the calls that run on an endpoint or wait for it.
func (e *Endpoint) calls() int { return e.busy() + e.queue.waiting }

// fewerCalls compares the calls per slot of a and b.
func fewerCalls(a, b *Endpoint) bool {
	left, right := a.calls()*b.limit, b.calls()*a.limit
	if left != right {
		return left < right
	}
	return a.lastLease < b.lastLease
}

type roundRobin struct{ last int }

// bind takes the endpoint that was added after the last one taken.
func (r *roundRobin) bind(_ *Request, up []*Endpoint, _ time.Duration) *Endpoint {
	next := up[0] // in the order in which they became ready
	for _, e := range up {
		switch after, before := e.index > r.last, next.index > r.last; {
		case after && !before, after == before && e.index < next.index:
			next = e
		}
	}
	r.last = next.index
	return next
}

func leastRequest(_ *Request, up []*Endpoint, _ time.Duration) *Endpoint {
	best := up[0]
	for _, e := range up[1:] {
		if fewerCalls(e, best) {
			best = e
		}
	}
	return best
}

// twoOf picks two endpoints at random and takes the better one.
// Source: Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing",
// IEEE Transactions on Parallel and Distributed Systems 2001.
func twoOf(random func() float64, better func(a, b *Endpoint, now time.Duration) bool) binder {
	return func(_ *Request, up []*Endpoint, now time.Duration) *Endpoint {
		if len(up) == 1 {
			return up[0]
		}
		i, j := chance(random, len(up)), chance(random, len(up)-1)
		if j >= i {
			j++
		}
		if better(up[j], up[i], now) {
			return up[j]
		}
		return up[i]
	}
}

// latency is an endpoint's run time: a peak counts at once, and all of it fades.
// Source: peak EWMA, as Finagle's documentation describes it.
type latency struct {
	ewma float64 // nanoseconds
	seen time.Duration
}

// latencyFades is the age at which a run counts 1/e.
const latencyFades = 10 * time.Second

func (l *latency) ran(run, now time.Duration) {
	weight := math.Exp(-float64(max(now-l.seen, 0)) / float64(latencyFades))
	l.ewma = max(float64(run), l.ewma*weight+float64(run)*(1-weight))
	l.seen = now
}

// cost is the latency times the calls, one more call included.
func (l *latency) cost(calls int, now time.Duration) float64 {
	fading := math.Exp(-float64(max(now-l.seen, 0)) / float64(latencyFades))
	return l.ewma * fading * float64(calls+1)
}

const (
	// ringPoints is how many points each endpoint has on the ring: shares of
	// equal endpoints differ by a tenth or so.
	ringPoints = 128
	// ringBound is how many times the mean number of calls per slot an endpoint
	// may have before the next one is taken, when none has a free slot.
	// Source: Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with
	// Bounded Loads", SODA 2018.
	ringBound = 1.25
)

// ring is consistent hashing with bounded loads. It is built again when the endpoints
// change.
type ring struct {
	points []point
	up     []*Endpoint // as the points were made
}

type point struct {
	hash     uint64
	endpoint *Endpoint
}

func (r *ring) bind(q *Request, up []*Endpoint, _ time.Duration) *Endpoint {
	if !slices.Equal(r.up, up) {
		r.make(up)
	}
	calls, slots := 1, 0
	for _, e := range up {
		calls += e.calls()
		slots += e.limit
	}
	start, _ := slices.BinarySearchFunc(r.points, q.Hash, func(p point, hash uint64) int { return cmp.Compare(p.hash, hash) })
	most := func(e *Endpoint) int { return e.limit } // the key's own while it has a free slot
	if calls > slots {
		bound := ringBound * float64(calls) / float64(slots)
		most = func(e *Endpoint) int { return int(math.Ceil(bound * float64(e.limit))) }
	}
	for i := range r.points {
		if e := r.points[(start+i)%len(r.points)].endpoint; e.calls() < most(e) {
			return e
		}
	}
	return leastRequest(q, up, 0)
}

// make puts the endpoints on the ring by their names, so that every instance of
// cabrank builds the same ring.
func (r *ring) make(up []*Endpoint) {
	r.up, r.points = slices.Clone(up), nil
	for _, e := range up {
		for i := range ringPoints {
			hash := fnv.New64a()
			hash.Write([]byte(e.name))
			hash.Write(binary.BigEndian.AppendUint32(nil, uint32(i)))
			r.points = append(r.points, point{mix(hash.Sum64()), e})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
}

// mix spreads what differs in a few bits over all of them: the finalizer of
// SplitMix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// bound binds a call to an endpoint by the policy. It returns the endpoint if the call
// may start there now, and nil if the call has to wait.
func (r *Rank) bound(t *Ticket, now time.Duration) *Endpoint {
	e := r.bindTo(t, now)
	if e == nil || !e.open() || !r.mayStartNow(t, e.queue, now) {
		return nil
	}
	return e
}

// bindTo binds a call to an endpoint and returns it; nil if no endpoint is up.
func (r *Rank) bindTo(t *Ticket, now time.Duration) *Endpoint {
	t.bound = nil
	if len(r.up) == 0 {
		return nil
	}
	t.bound = r.bind(&t.Request, r.up, now)
	if t.bound == t.Request.Avoid && len(r.up) > 1 {
		t.bound = leastRequest(&t.Request, others(r.up, t.bound), now)
	}
	return t.bound
}

// others returns the endpoints without but.
func others(up []*Endpoint, but *Endpoint) []*Endpoint {
	return slices.DeleteFunc(slices.Clone(up), func(e *Endpoint) bool { return e == but })
}

// queueFor returns the queue in which a call waits.
func (r *Rank) queueFor(t *Ticket) *queue {
	if t.bound != nil {
		return t.bound.queue
	}
	return r.queue
}

// rebind moves the calls that wait for e if e gets no more calls, else the calls that
// wait for any endpoint.
func (r *Rank) rebind(e *Endpoint, now time.Duration) {
	from := r.queue
	if !e.up() {
		from = e.queue
	}
	for from.waiting > 0 {
		t := from.first()
		r.unqueue(t)
		r.bindTo(t, now)
		r.queueFor(t).join(t, t.position)
		if t.bound == nil && from == r.queue {
			return // no endpoint is up: the calls go on waiting
		}
	}
}

// first returns some call that waits.
func (q *queue) first() *Ticket {
	for i := range q.lanes {
		if f := q.lanes[i].any(); f != nil {
			return f.list.first
		}
	}
	return nil
}

// serveBound is serve for calls that are bound to their endpoints.
func (r *Rank) serveBound(now time.Duration, into []Notice) []Notice {
	for _, e := range r.endpoints {
		for e.queue.waiting > 0 && e.open() {
			f := r.next(e.queue, now)
			if f == nil {
				break
			}
			into = r.serveNext(f, e, now, into)
		}
	}
	return into
}
