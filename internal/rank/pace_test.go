package rank

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Chance does not make equal endpoints slow.
func TestEqualEndpointsAreNotSlow(t *testing.T) {
	r, _ := newRank(t, 10, 1, 1, 1, 1, 1, 1, 1, 1)
	m := r.Method("/a.B/C")
	random := rand.New(rand.NewPCG(2, 2))
	slow := 0
	now := time.Duration(0)
	for range 200 {
		for range 100 {
			c := with(nil, m, now)
			c.acquire(t, r, now, Granted)
			mean := 10 * ms
			if random.IntN(20) == 0 { // mixed work
				mean = 210 * ms
			}
			now += time.Duration(random.ExpFloat64() * float64(mean))
			c.release(r, OK, now)
		}
		for _, s := range r.Snapshot().Endpoints {
			if s.Slow {
				slow++
			}
		}
	}
	testkit.Want(t, slow <= 8*200/20, "endpoints that are all alike were slow at %d of %d looks", slow, 8*200)
}

// An endpoint that fails quickly does not attract calls, be it one of two.
func TestFastFailuresAttractNobody(t *testing.T) {
	for _, slots := range [][]int{{1, 1, 1}, {1, 1}} {
		r, e := newRank(t, 10, slots...)
		m, now, served := r.Method("/a.B/C"), time.Duration(0), 0
		for i := range 3000 {
			c := with(nil, m, now)
			c.acquire(t, r, now, Granted)
			o, run := OK, 10*ms
			if c.lease.Endpoint() == e[0] {
				o, run = Faulty, 100*time.Microsecond
				if i >= 300 {
					served++
				}
			}
			now += run
			c.release(r, o, now)
		}
		testkit.Want(t, served <= 30, "the failing one of %d endpoints got %d of 2,700 calls", len(slots), served)
	}
}

// A worker that is very slow loses slots, and one always stays.
func TestVerySlowEndpointLosesSlots(t *testing.T) {
	var p pace
	e := Endpoint{slots: 8, limit: 8}
	for _, step := range []struct {
		octaves float64
		limit   int
	}{{0.5, 8}, {1.5, 8}, {2.1, 4}, {3.3, 2}, {6, 1}, {0, 8}} {
		p.count, p.mean = compareAfter, int(step.octaves*4*paceUnit)
		p.runs, p.long = longRuns, p.mean
		p.compare(0)
		e.pace = p
		e.relimit()
		testkit.Want(t, e.limit == step.limit, "%v octaves slower: %d slots, want %d", step.octaves, e.limit, step.limit)
	}
}
