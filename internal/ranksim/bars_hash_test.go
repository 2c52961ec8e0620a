package ranksim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// cache is what a worker has in memory: the keys of its last calls, the last one at the end.
type cache struct {
	keys      []uint64
	hits, all int
}

const (
	// Each of four caches has room for more than its part of so many keys.
	hashKeys  = 400
	cacheKeys = 150
)

// takes returns how long a call takes: twice as long without its key in the cache.
func (m *cache) takes(c *Call, _ time.Duration) time.Duration {
	at := slices.Index(m.keys, c.Key)
	m.all++
	if at >= 0 {
		m.hits++
		m.keys = append(slices.Delete(m.keys, at, at+1), c.Key)
		return c.Service
	}
	m.keys = append(m.keys, c.Key)
	m.keys = m.keys[max(0, len(m.keys)-cacheKeys):]
	return 2 * c.Service
}

// Calls that wait for the worker of their key find it with what they need also when there
// are more calls than slots: at 0.9 of what the workers could do if each had everything all
// are answered, and at 1.2 as many as can be. With one queue for all the caches are of no use
// then (docs/decisions/106): a third of the calls fails.
func TestBarByHash(t *testing.T) {
	t.Parallel()
	bar(t, "ring_hash", func(r *recorder) {
		for load, want := range map[float64]struct{ hits, answered float64 }{
			0.6: {0.7, 0.999}, 0.9: {0.8, 0.99}, 1.2: {0.9, 0.75},
		} {
			calls := oneCaller(r.seed, r.calls, load, 20, Exponential(20*time.Millisecond)).Draw()
			random := rand.New(rand.NewPCG(r.seed, hashKeys))
			for i := range calls {
				calls[i].Deadline, calls[i].Key = calls[i].Arrives+time.Second, random.Uint64N(hashKeys)
			}
			o := rankOptions()
			o.ByHash = true
			caches, workers := make([]cache, 4), Alike(4, Worker{Slots: 5})
			for i := range workers {
				workers[i].Takes = caches[i].takes
			}
			got := Run(System{Rank: o, Workers: workers}, calls)
			hits, all := 0, 0
			for i := range caches {
				hits, all = hits+caches[i].hits, all+caches[i].all
			}
			r.setting = fmt.Sprintf("load %.1f", load)
			r.note("calls whose worker knows their key", Share(hits, all), atLeast(want.hits))
			r.note("answered", Share(got.Answered(Everyone)), atLeast(want.answered))
		}
	})
}
