package ranksim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Policy chooses a worker when a call comes, as balancers without a queue do. The call then
// waits for that worker, in the order of arrival, also while others are idle: this is what
// Cabrank is compared with. One balancer sees all calls.
type Policy string

const (
	// Random takes any worker.
	Random Policy = "random"
	// RoundRobin takes one after the other.
	RoundRobin Policy = "round_robin"
	// LeastRequest takes the one with the fewest calls, waiting ones included.
	LeastRequest Policy = "least_request"
	// P2C takes the one with fewer calls of two by chance.
	// Source: Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing",
	// IEEE Transactions on Parallel and Distributed Systems 2001.
	P2C Policy = "p2c"
	// PeakEWMA takes the one with the lower product of calls and run time of two by chance;
	// a peak of the run time counts at once and fades slowly.
	// Source: Finagle's documentation of its balancers.
	PeakEWMA Policy = "peak_ewma"
)

// Early gives each of the calls, which are in the order of their arrival, to one of so many
// workers with so many slots by a policy. Like FirstCome it does not use the rank.
func Early(p Policy, calls []Call, workers, slots int, h Handlers, seed uint64) *Result {
	r := newResult(calls)
	all := make([]*binding, workers)
	for i := range all {
		all[i] = &binding{free: make([]time.Duration, slots)}
	}
	random := rand.New(rand.NewPCG(seed, systemStream))
	for i := range calls {
		now := calls[i].Arrives
		for _, w := range all {
			w.forget(now)
		}
		w := p.choose(i, all, random, now)
		w.last = i + 1
		w.serve(r, i, h)
	}
	return r
}

// systemStream is the number of the random sequence of a policy. No workload uses it.
const systemStream = 1 << 62

// choose returns the worker for call i.
func (p Policy) choose(i int, all []*binding, random *rand.Rand, now time.Duration) *binding {
	switch p {
	case Random:
		return all[random.IntN(len(all))]
	case RoundRobin:
		return all[i%len(all)]
	case P2C, PeakEWMA:
		random.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		all = all[:min(2, len(all))]
	case LeastRequest:
	}
	return slices.MinFunc(all, func(a, b *binding) int {
		return cmp.Or(cmp.Compare(a.cost(p, now), b.cost(p, now)), cmp.Compare(a.last, b.last))
	})
}

// binding is a worker to which calls are bound.
type binding struct {
	free  []time.Duration // when each slot is free
	calls []bound         // that run or wait, in the order in which they end
	last  int             // the last call that came, from 1 on
	// The run time: a peak counts at once, and all of it fades.
	ewma float64 // nanoseconds
	seen time.Duration
}

// bound is a call at its worker.
type bound struct{ ran, ends time.Duration }

// serve gives a call its turn: nothing that comes later changes it.
func (w *binding) serve(r *Result, call int, h Handlers) {
	next := slices.Index(w.free, slices.Min(w.free))
	start := max(r.Calls[call].Arrives, w.free[next])
	held := r.serve(call, start, h)
	b := bound{ran: held, ends: r.Calls[call].Arrives + r.Records[call].Sojourn}
	if held > 0 {
		w.free[next], b.ends = start+held, start+held
	}
	at, _ := slices.BinarySearchFunc(w.calls, b, func(a, b bound) int { return cmp.Compare(a.ends, b.ends) })
	w.calls = slices.Insert(w.calls, at, b)
}

// latencyFades is the age at which a run counts 1/e.
const latencyFades = 10 * time.Second

// forget lets calls end that have ended by now, and learns how long they ran.
func (w *binding) forget(now time.Duration) {
	for len(w.calls) > 0 && w.calls[0].ends <= now {
		b := w.calls[0]
		w.calls = w.calls[1:]
		if b.ran > 0 {
			weight := w.fading(b.ends)
			w.ewma = max(float64(b.ran), w.ewma*weight+float64(b.ran)*(1-weight))
			w.seen = b.ends
		}
	}
}

func (w *binding) fading(now time.Duration) float64 {
	return math.Exp(-float64(now-w.seen) / float64(latencyFades))
}

// cost is what a policy wants least of: calls, or the run time times these and one more.
func (w *binding) cost(p Policy, now time.Duration) float64 {
	if p != PeakEWMA {
		return float64(len(w.calls))
	}
	return w.ewma * w.fading(now) * float64(len(w.calls)+1)
}
