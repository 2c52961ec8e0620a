package traffic

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// arrivals are all that a plan has.
func arrivals(p Plan) []Arrival { return slices.Collect(p.Arrivals()) }

// between counts those that are due in a stretch.
func between(all []Arrival, from, to time.Duration) (n float64) {
	for _, a := range all {
		if a.Due >= from && a.Due < to {
			n++
		}
	}
	return n
}

// A rate that does not divide a second is rounded up to the grid, and keeps its number of calls.
func TestConstantArrivals(t *testing.T) {
	for _, tc := range []struct {
		rate  string
		calls int
		gap   float64       // in seconds
		off   time.Duration // at most
	}{{"500", 5000, 0.002, 1}, {"7001", 70_010, 1. / 7001, grid}} {
		all := arrivals(plan(t, Options{Rate: tc.rate, Duration: 10 * time.Second}))
		testkit.Need(t, len(all) == tc.calls, "%d calls, want %d", len(all), tc.calls)
		for i, a := range all {
			exact := time.Duration(float64(i) * tc.gap * float64(time.Second))
			testkit.Need(t, a.Due >= exact && a.Due-exact <= tc.off && a.Due%grid == 0 && a.Number == uint64(i) && a.Counted,
				"call %d: %+v, exactly %v", i, a, exact)
		}
	}
}

// A number of calls at a rate is exact where they are evenly spread, after any warm-up.
func TestCallsAtARate(t *testing.T) {
	for _, o := range []Options{{Rate: "7", Calls: 100}, {Rate: "333.3", Calls: 1234, Warmup: time.Second}, {Rate: "1000000", Calls: 1}} {
		p, err := o.Plan()
		testkit.Must(t, err)
		n := 0
		for a := range p.Arrivals() {
			if a.Counted {
				n++
			}
		}
		testkit.Want(t, n == o.Calls, "%d calls at %s, want %d", n, o.Rate, o.Calls)
	}
	if p, err := (Options{Callers: 2, Calls: 5}).Plan(); err != nil || p.Calls != 5 || p.Duration() != 10*time.Minute {
		t.Errorf("%+v, %v", p, err)
	}
}

// The number of calls of a ramp up to a moment is the integral of the rate.
func TestRampFollowsTheIntegral(t *testing.T) {
	for _, text := range []string{"100..500", "500..100", "0..400", "400..0"} {
		p := plan(t, Options{Rate: text, Duration: 40 * time.Second})
		all := arrivals(p)
		testkit.Want(t, all[0].Due == 0, "%s: the first call is due at %v", text, all[0].Due)
		for s := 1.0; s <= 40; s++ {
			x := p.Rate[0]
			want := x.From*s + (x.To-x.From)*s*s/80
			got := between(all, 0, time.Duration(s*float64(time.Second)))
			testkit.Want(t, math.Abs(got-want) <= 1.5, "%s: %v calls in %v s, want %v", text, got, s, want)
		}
	}
}

func TestSteps(t *testing.T) {
	all := arrivals(plan(t, Options{Rate: "10s:100,1s:2000,10s:100"}))
	borders := []time.Duration{0, 10 * time.Second, 11 * time.Second, 21 * time.Second}
	for i, want := range []float64{1000, 2000, 1000} {
		got := between(all, borders[i], borders[i+1])
		testkit.Want(t, math.Abs(got-want) <= 1, "piece %d: %v calls, want %v", i, got, want)
	}
	testkit.Want(t, len(all) == 4000, "%d calls, want 4,000", len(all))
}

// The gaps of Poisson arrivals are exponential: mean and deviation are equal, and the share of
// gaps above the mean is 1/e. Counts of disjoint seconds vary by their mean.
func TestPoissonArrivals(t *testing.T) {
	all := arrivals(plan(t, Options{Rate: "100", Arrivals: "poisson", Duration: 1000 * time.Second, Seed: 3}))
	n := float64(len(all))
	near(t, "calls", n, 100_000, 0.01)
	var mean, squares, above float64
	for i := 1; i < len(all); i++ {
		gap := (all[i].Due - all[i-1].Due).Seconds()
		mean += gap / n
		squares += gap * gap / n
		if gap > 0.01 {
			above++
		}
	}
	near(t, "mean of the gaps", mean, 0.01, 0.01)
	near(t, "deviation of the gaps", math.Sqrt(squares-mean*mean), 0.01, 0.02)
	near(t, "share above the mean", above/n, 1/math.E, 0.02)
	var variance float64
	for s := range 1000 {
		from := time.Duration(s) * time.Second
		d := between(all[max(0, s*80-1000):min(len(all), s*120+1000)], from, from+time.Second) - 100
		variance += d * d / 1000
	}
	near(t, "variance of the counts", variance, 100, 0.2)
}

func TestSeeds(t *testing.T) {
	o := Options{Rate: "100..500", Arrivals: "poisson", Duration: 10 * time.Second, Seed: 1}
	one := arrivals(plan(t, o))
	testkit.Want(t, slices.Equal(one, arrivals(plan(t, o))), "one seed, two rows of arrivals")
	o.Seed = 2
	testkit.Want(t, !slices.Equal(one, arrivals(plan(t, o))), "two seeds, the same arrivals")
}

// The warm-up comes before the plan and changes no moment of it.
func TestWarmupComesBefore(t *testing.T) {
	o := Options{Rate: "100..500", Arrivals: "poisson", Duration: 10 * time.Second, Seed: 1}
	without := arrivals(plan(t, o))
	o.Warmup = 5 * time.Second
	with := arrivals(plan(t, o))
	first := slices.IndexFunc(with, func(a Arrival) bool { return a.Counted })
	near(t, "calls of the warm-up", float64(first), 500, 0.15)
	for i, a := range with[first:] {
		testkit.Need(t, a.Due == without[i].Due+o.Warmup && a.Number == uint64(first+i),
			"call %d is due at %v with a warm-up, at %v without", i, a.Due, without[i].Due)
	}
	testkit.Want(t, len(with)-first == len(without), "%d calls with a warm-up, %d without", len(with)-first, len(without))
}

// Parts of a plan make together what the whole makes.
func TestPartsMakeTheWhole(t *testing.T) {
	p := plan(t, Options{Rate: "50..300", Arrivals: "poisson", Duration: 10 * time.Second, Warmup: time.Second, Seed: 9})
	whole := arrivals(p)
	var parts []Arrival
	for p.Part, p.Parts = 0, 3; p.Part < 3; p.Part++ {
		parts = append(parts, arrivals(p)...)
	}
	slices.SortFunc(parts, func(a, b Arrival) int { return int(a.Number) - int(b.Number) })
	testkit.Want(t, slices.Equal(whole, parts), "the whole has %d calls, the parts have %d, or at other moments", len(whole), len(parts))
}
