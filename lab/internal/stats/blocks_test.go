//go:build !race

package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
)

// callsInBlock is the least that tells a p99.
const callsInBlock = 10_000

// blocks is how many are simulated of each kind. Trials draw from them, so that
// they are the whole population and its mean is the truth.
const blocks = 400

// p99 is the figure of a block.
func p99(t *testing.T, h *latency.Histogram) float64 {
	t.Helper()
	q := h.Quantile(0.99)
	testkit.Need(t, !q.TooFew, "%d calls in a block, a p99 needs %d", h.Count(), q.Needs)
	return float64(q.Value)
}

// tailed is the p99 of a block of independent calls with a heavy tail: 1 ms, lognormal, and 2 %
// of them longer by a Pareto time with exponent 1.2, which has a mean but no variance.
func tailed(t *testing.T, random *rand.Rand) float64 {
	t.Helper()
	h := latency.New()
	for range callsInBlock {
		ns := 1e6 * math.Exp(0.5*random.NormFloat64())
		if random.Float64() < 0.02 {
			ns += 1e6 * math.Pow(random.Float64(), -1/1.2)
		}
		h.Record(time.Duration(min(ns, float64(latency.Bound))))
	}
	return p99(t, h)
}

// queued are the p99s of a pair of blocks with the same arrivals and the same service times: four
// workers, each with a queue of its own that calls choose at random, against one queue for all
// four. Calls of a block depend on each other, as they do in reality: one long call delays many.
//
// Service times are 95 % exponential around 10 ms and 5 % around 210 ms.
func queued(t *testing.T, seed uint64, load float64) (random, single float64) {
	t.Helper()
	chance := rand.New(rand.NewPCG(seed, 1))
	apart, shared := latency.New(), latency.New()
	var apartFree, sharedFree [4]float64 // when each worker is free again, in ns
	now := 0.0
	for range callsInBlock {
		now += chance.ExpFloat64() * 20e6 / 4 / load
		service := chance.ExpFloat64() * 10e6
		if chance.Float64() < 0.05 {
			service *= 21
		}
		apart.Record(serve(&apartFree[chance.IntN(4)], now, service))
		first := 0
		for i, free := range sharedFree {
			if free < sharedFree[first] {
				first = i
			}
		}
		shared.Record(serve(&sharedFree[first], now, service))
	}
	return p99(t, apart), p99(t, shared)
}

// serve runs a call on a worker and returns how long it took from its arrival.
func serve(free *float64, now, service float64) time.Duration {
	*free = max(*free, now) + service
	return time.Duration(*free - now)
}
