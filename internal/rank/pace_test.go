package rank

import (
	"math/rand/v2"
	"testing"
	"time"
)

// pacedRank is a rank of equal endpoints whose calls take as long as run says.
func runPaced(tb testing.TB, r *Rank, m *Method, calls int, now time.Duration, run func(*Endpoint) time.Duration) (served map[*Endpoint]int, end time.Duration) {
	tb.Helper()
	served = map[*Endpoint]int{}
	for range calls {
		c := with(nil, m, now)
		c.acquire(tb, r, now, Granted)
		served[c.lease.Endpoint()]++
		now += run(c.lease.Endpoint())
		c.release(r, OK, now)
	}
	return served, now
}

// A slow endpoint gets hardly any calls while others have free slots, is tried
// now and then, and is used again when it has become as fast as the rest.
func TestSlowEndpointIsProbed(t *testing.T) {
	r, e := newRank(t, 10, 1, 1, 1, 1, 1)
	m := r.Method("/a.B/C")
	random := rand.New(rand.NewPCG(1, 1))
	slow := 10.0
	run := func(x *Endpoint) time.Duration {
		d := random.ExpFloat64() * float64(20*ms)
		if x == e[2] {
			d *= slow
		}
		return time.Duration(d)
	}
	_, now := runPaced(t, r, m, 2000, 0, run)
	before := r.Decisions()
	served, now := runPaced(t, r, m, 20_000, now, run)
	if n := served[e[2]]; n == 0 || n > 20 {
		t.Errorf("the slow endpoint got %d of 20,000 calls, want a probe for each 2,000 or so", n)
	}
	after := r.Decisions()
	preferred, probed := after["preferred_faster"]-before["preferred_faster"], after["probed_slow"]-before["probed_slow"]
	if preferred+probed != 20_000 || int(probed) != served[e[2]] {
		t.Errorf("%d calls were given to a faster one and %d as probes, want 20,000 in all", preferred, probed)
	}
	if s := r.Snapshot().Endpoints[2]; !s.Slow || s.Pace < 4 {
		t.Errorf("%+v", s)
	}
	if d := r.Decisions(); d["preferred_faster"] < 15_000 || d["probed_slow"] == 0 {
		t.Errorf("%v", d)
	}
	slow = 1
	_, now = runPaced(t, r, m, 60_000, now, run)
	served, _ = runPaced(t, r, m, 5000, now, run)
	if n := served[e[2]]; n < 500 {
		t.Errorf("it got %d of 5,000 calls when it was as fast as the others", n)
	}
}

// Chance does not make equal endpoints slow.
func TestEqualEndpointsAreNotSlow(t *testing.T) {
	r, _ := newRank(t, 10, 1, 1, 1, 1, 1, 1, 1, 1)
	m := r.Method("/a.B/C")
	random := rand.New(rand.NewPCG(2, 2))
	slow := 0
	now := time.Duration(0)
	for range 200 {
		_, now = runPaced(t, r, m, 100, now, func(*Endpoint) time.Duration {
			if random.IntN(20) == 0 { // mixed work
				return time.Duration(random.ExpFloat64() * float64(210*ms))
			}
			return time.Duration(random.ExpFloat64() * float64(10*ms))
		})
		for _, s := range r.Snapshot().Endpoints {
			if s.Slow {
				slow++
			}
		}
	}
	if slow > 8*200/20 {
		t.Errorf("endpoints that are all alike were slow at %d of %d looks", slow, 8*200)
	}
}

// An endpoint that fails quickly does not attract calls, be it one of two.
func TestFastFailuresAttractNobody(t *testing.T) {
	for _, slots := range [][]int{{1, 1, 1}, {1, 1}} {
		fastFailures(t, slots...)
	}
}

func fastFailures(t *testing.T, slots ...int) {
	t.Helper()
	r, e := newRank(t, 10, slots...)
	m := r.Method("/a.B/C")
	served := map[*Endpoint]int{}
	now := time.Duration(0)
	for i := range 3000 {
		c := with(nil, m, now)
		c.acquire(t, r, now, Granted)
		at := c.lease.Endpoint()
		if i >= 300 {
			served[at]++
		}
		if at == e[0] {
			now += 100 * time.Microsecond
			c.release(r, Faulty, now)
		} else {
			now += 10 * ms
			c.release(r, OK, now)
		}
	}
	if served[e[0]] > 30 {
		t.Errorf("the failing one of %d endpoints got %d of 2,700 calls", len(slots), served[e[0]])
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
		if e.limit != step.limit {
			t.Errorf("%v octaves slower: %d slots, want %d", step.octaves, e.limit, step.limit)
		}
	}
}
