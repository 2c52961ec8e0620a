package rank

import (
	"cmp"
	"hash/fnv"
	"math"
)

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
