package rank

import (
	"cmp"
	"hash/fnv"
	"math"
)

// queue is the calls that wait for the same slots.
//
// Concurrency: belongs to the rank's lock.
type queue struct {
	endpoint *Endpoint   // whose slots; nil: any
	lanes    []laneQueue // by lane index
	waiting  int
	pool     *flowPool // shared by all queues
}

func newQueue(e *Endpoint, lanes []*lane, s *flowPool) *queue {
	q := &queue{endpoint: e, lanes: make([]laneQueue, len(lanes)), pool: s}
	for i, l := range lanes {
		q.lanes[i] = laneQueue{queue: q, lane: l}
	}
	return q
}

// queues goes through all queues.
func (r *Rank) queues(yield func(*queue) bool) {
	if !yield(r.queue) || !r.byHash {
		return
	}
	for _, e := range r.endpoints {
		if !yield(e.queue) {
			return
		}
	}
}

// slotFor reports whether a slot is free for calls of q.
func (r *Rank) slotFor(q *queue) bool {
	if q.endpoint != nil {
		return q.endpoint.open()
	}
	return len(r.free) > 0
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

// eachFlow goes through the flows that wait in q.
func (q *queue) eachFlow(do func(*flow)) {
	if q.waiting == 0 {
		return
	}
	for i := range q.lanes {
		l := &q.lanes[i]
		for _, h := range []*flowHeap{&l.modest, &l.greedy} {
			for _, f := range h.flows {
				do(f)
			}
		}
	}
}

// join adds t.
func (q *queue) join(t *Ticket, at position) {
	l, a := &q.lanes[t.lane.index], t.account
	l.lane.enter(a)
	f := l.find(a)
	if f == nil {
		f = l.begin(a, t)
	}
	t.flow = f
	f.list.join(t, at)
	if at == head {
		l.moved(f)
	}
	t.expected = t.method.expectedRun()
	a.queued += t.expected
	q.count(t, 1)
	if l.longest == nil || f.waiting > l.longest.waiting {
		l.longest = f
	}
}

// remove takes out t, which waits in q.
func (q *queue) remove(t *Ticket) {
	f := t.flow
	l := f.lane
	f.list.remove(t)
	t.account.queued -= t.expected
	l.lane.exit(t.account)
	q.count(t, -1)
	t.flow = nil
	if f.waiting > 0 {
		l.moved(f)
	} else {
		l.end(f)
	}
}

// count adds n to all counts of waiting calls.
func (q *queue) count(t *Ticket, n int) {
	t.flow.waiting += n
	t.flow.lane.waiting += n
	t.lane.waiting += n
	q.waiting += n
	t.account.waiting += n
}

// victim returns a call to drop for a new one of account a in lane l, or nil: a call
// of a lane that is served later, else one of the account with the most waiting calls,
// if those are more than a would have.
func (q *queue) victim(l *laneQueue, a *Account) *Ticket {
	var from *flow
	own := l.waitingOf(a)
	for i := range q.lanes {
		other := q.lanes[i].longest
		switch {
		case other == nil || other.account == a && other.lane == l || q.lanes[i].lane.priority > l.lane.priority:
		case q.lanes[i].lane.priority == l.lane.priority && other.waiting <= own+1:
		case from == nil || from.comesBefore(other):
			from = other
		}
	}
	if from == nil {
		return nil
	}
	return from.list.toDrop()
}

// comesBefore reports whether f's calls have a better claim to stay than g's.
func (f *flow) comesBefore(g *flow) bool {
	if p, q := f.lane.lane.priority, g.lane.lane.priority; p != q {
		return p > q
	}
	return f.waiting < g.waiting
}

// With Options.ByHash each endpoint has a queue, and a call waits in that of its home.
// Rendezvous hashing puts the endpoints in an order for each hash: when one of them comes
// or goes, the hashes of others stay where they are. It goes by names, so that several
// Cabranks agree.
// Source: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
// IEEE/ACM Transactions on Networking 1998.

// homeBound is how many times the mean number of calls per slot an endpoint may have before
// the next one is a call's home, when none has a free slot.
// Source: Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads",
// SODA 2018.
const homeBound = 1.25

// home returns the endpoint at which a call runs or waits: the first one in the order of its
// hash that does not have too many calls; nil if none is up.
//
// Cost: O(endpoints).
func (r *Rank) home(q *Request) (home *Endpoint) {
	calls, slots := 1, 0
	for _, e := range r.up {
		calls += e.calls()
		slots += e.limit
	}
	bound := 1.0 // its first one has the call while it has a free slot
	if calls > slots {
		bound = homeBound * float64(calls) / float64(slots)
	}
	hash := cmp.Or(q.Hash, r.leases) // calls without the header are spread
	var most uint64                  // first who is not avoided (R1), then who has room, then by hash
	for _, e := range r.up {
		claim := mix(e.hash^hash)>>2 | 1
		if e != q.Avoid {
			claim |= 1 << 63
		}
		if float64(e.calls()) < math.Ceil(bound*float64(e.limit)) {
			claim |= 1 << 62
		}
		if claim > most {
			home, most = e, claim
		}
	}
	return home
}

// calls counts the calls that run on an endpoint or wait for it.
func (e *Endpoint) calls() int { return e.busy() + e.queue.waiting }

func hashOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// mix spreads what differs in a few bits over all of them: the finalizer of
// SplitMix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// queueFor returns the queue in which a call waits if it cannot start.
func (r *Rank) queueFor(t *Ticket) *queue {
	if r.byHash {
		if e := r.home(&t.Request); e != nil {
			return e.queue
		}
	}
	return r.queue
}

// rehome moves the calls that wait for e if e gets no more calls, else the calls that
// wait for any endpoint.
func (r *Rank) rehome(e *Endpoint) {
	from := r.queue
	if !e.up() {
		from = e.queue
	}
	for from.waiting > 0 && (from != r.queue || len(r.up) > 0) {
		t := from.first()
		r.unqueue(t)
		r.queueFor(t).join(t, t.position)
	}
}
