package ranksim

import (
	"math"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const ms = time.Millisecond

// kinds are the services of the bars; all have a mean of 20 ms.
var kinds = []struct {
	name string
	Service
}{
	{"exponential", Exponential(20 * ms)},
	{"constant", Constant(20 * ms)},
	{"mixed", Mixed()},
}

// oneCaller is a workload of about n calls at a share of what slots can do.
func oneCaller(seed uint64, n int, load float64, slots int, service Service) Workload {
	rate := load * float64(slots) / 0.020
	return Workload{
		Seed:    seed,
		Until:   time.Duration(float64(n) / rate * float64(time.Second)),
		Callers: []Caller{{Rate: rate, Service: service}},
	}
}

// The ideal agrees with theory: the mean wait of M/M/4 is Erlang's, that of
// M/G/1 Pollaczek's and Khinchine's.
func TestIdealAgreesWithTheory(t *testing.T) {
	t.Parallel()
	if !barHolds {
		t.Skip("it takes many calls")
	}
	load := 0.7
	for _, tc := range []struct {
		name    string
		slots   int
		service Service
		want    time.Duration
	}{
		{"M/M/4", 4, Exponential(20 * ms), time.Duration(erlangC(4, load) / (4 * (1 - load)) * float64(20*ms))},
		{"M/M/1", 1, Exponential(20 * ms), time.Duration(load / (1 - load) * float64(20*ms))},
		{"M/D/1", 1, Constant(20 * ms), time.Duration(load / (1 - load) / 2 * float64(20*ms))},
		// E[S²] = 0.95·2·10² + 0.05·2·210² = 4,600 ms²
		{"M/G/1", 1, Mixed(), time.Duration(load / 20 * 4600 / 2 / (1 - load) * float64(ms))},
	} {
		calls := oneCaller(3, 400_000, load, tc.slots, tc.service).Draw()
		var sum time.Duration
		for _, wait := range FirstCome(calls, tc.slots, Handlers{}).Waits(Everyone) {
			sum += wait
		}
		got := sum / time.Duration(len(calls))
		testkit.Want(t, math.Abs(Share(got, tc.want)-1) <= 0.05, "%s: mean wait %v, want %v", tc.name, got, tc.want)
	}
}

// erlangC is the probability that a call waits in M/M/k at this load.
func erlangC(k int, load float64) float64 {
	a := load * float64(k)
	term, sum := 1.0, 0.0
	for i := range k {
		sum += term
		term *= a / float64(i+1)
	}
	last := term / (1 - load)
	return last / (sum + last)
}

// The preferred caller waits for running handlers only, and the total work is
// the same as in the order of arrival.
func TestPreferringServesOneFirst(t *testing.T) {
	t.Parallel()
	w := oneCaller(1, 20_000, 0.6, 4, Mixed())
	w.Callers = append(w.Callers, Caller{Rate: 60, Service: Mixed()})
	calls := w.Draw()
	fair, preferred := FirstCome(calls, 4, Handlers{}), Preferring(1, calls, 4, Handlers{})
	for _, caller := range []int{0, 1} {
		before := Quantile(fair.Waits(OfCaller(caller)), 0.99)
		after := Quantile(preferred.Waits(OfCaller(caller)), 0.99)
		testkit.Want(t, (after < before) == (caller == 1), "caller %d: p99 of the wait %v, preferring %v", caller, before, after)
	}
	_, held := fair.Held(Everyone)
	_, other := preferred.Held(Everyone)
	testkit.Want(t, other == held, "work %v, preferring %v", held, other)
	alone := Preferring(0, calls[:1], 4, Handlers{})
	testkit.Want(t, alone.Records[0].Wait == 0 && alone.Records[0].Ending == Answered, "a call alone: %+v", alone.Records[0])
}

// A caller's calls do not change with those of another, and a burst brings more
// of them while it lasts.
func TestDraw(t *testing.T) {
	t.Parallel()
	w := Workload{
		Seed: 7, Until: 30 * time.Second,
		Callers: []Caller{{Rate: 100, Service: Mixed()}, {Rate: 50, Service: Constant(ms)}},
	}
	two := only(w.Draw(), 0)
	w.Callers = w.Callers[:1]
	one := w.Draw()
	testkit.Need(t, len(one) == len(two), "%d calls alone, %d beside another caller", len(one), len(two))
	for i := range one {
		testkit.Need(t, one[i] == two[i], "call %d is %+v alone, %+v beside another caller", i, one[i], two[i])
	}
	w.Bursts = []Burst{{From: 10 * time.Second, To: 20 * time.Second, Factor: 3}}
	counts := map[int]int{}
	for _, c := range w.Draw() {
		counts[int(c.Arrives/(10*time.Second))]++
	}
	for i, want := range []int{1000, 3000, 1000} {
		testkit.Want(t, math.Abs(float64(counts[i]-want)) <= 0.1*float64(want), "%d calls in part %d, want about %d", counts[i], i, want)
	}
}

func only(calls []Call, caller int) []Call {
	var some []Call
	for i := range calls {
		if calls[i].Caller == caller {
			some = append(some, calls[i])
		}
	}
	return some
}
