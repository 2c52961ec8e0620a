package goal

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// service is what a search loads, in virtual time.
type service struct {
	run    func(rate float64) *traffic.Record // what a run at a rate measures
	probe  func() *traffic.Record             // nil: always well
	busy   float64
	length time.Duration
	probes int
}

func (s *service) options(t testing.TB, first float64, thresholds ...string) Options {
	t.Helper()
	if s.length == 0 {
		s.length = 10 * time.Second
	}
	return Options{
		Thresholds: parse(t, thresholds...), First: first,
		Run: func(ctx context.Context, rate float64) (Run, error) {
			cut := !sleep(ctx, s.length)
			r := s.run(rate)
			r.Cut = cut
			return Run{Record: r, Busy: s.busy}, nil
		},
		Probe: func(ctx context.Context) (*traffic.Record, error) {
			s.probes++
			sleep(ctx, 100*ms)
			if s.probe == nil {
				return add(blank(100*ms), 20, 5*ms), nil
			}
			return s.probe(), nil
		},
	}
}

// sleep reports whether nobody has cancelled it.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// find searches in virtual time.
func find(t *testing.T, o Options) (r Result, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var err error
		if r, err = Find(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
	})
	return r, took
}

// upTo answers in 10 ms up to a rate, and in a second above it.
func upTo(most float64) func(float64) *traffic.Record {
	return func(rate float64) *traffic.Record {
		if rate <= most {
			return add(blank(10*time.Second), 100, 10*ms)
		}
		return add(blank(10*time.Second), 100, time.Second)
	}
}

func TestFind(t *testing.T) {
	s := &service{run: upTo(1950)}
	var told []string
	o := s.options(t, 100, "p99<100ms")
	o.Told = func(step Step) { told = append(told, step.String()) }
	r, took := find(t, o)
	testkit.Want(t, r.Outcome == Found && r.Sure && r.Holds == 1900 && r.Fails == 1980 && r.Limited == 0 && len(r.Notes) == 0, "%+v", r)
	testkit.Want(t, r.String() == "holds at 1,900/s, fails at 1,980/s", "%v", r)
	want := `100/s: held
200/s: held
400/s: held
800/s: held
1,600/s: held
3,200/s: missed, p99<100ms (1s)
3,200/s, run 2: missed, p99<100ms (1s)
2,260/s: missed, p99<100ms (1s)
2,260/s, run 2: missed, p99<100ms (1s)
1,900/s: held
2,070/s: missed, p99<100ms (1s)
2,070/s, run 2: missed, p99<100ms (1s)
1,980/s: missed, p99<100ms (1s)
1,980/s, run 2: missed, p99<100ms (1s)
1,900/s, run 2: held
1,980/s, run 3: missed, p99<100ms (1s)`
	testkit.Equal(t, strings.Join(told, "\n"), want, "the steps")
	n := len(r.Steps)
	testkit.Want(t, took.Seconds() == 10.1*float64(n), "%d runs took %v", n, took)
	data, err := json.Marshal(r)
	if err != nil || !strings.HasPrefix(string(data), `{"outcome":"found","holds":1900,"fails":1980,"confirmed":true,"steps":[{"rate":100,"try":1,"began_ns":100000000,"took_ns":10000000000,"rested_ns":0,"judgement":{"verdict":"held",`) {
		t.Errorf("%s, %v", data, err)
	}
}

// mmk are the latencies of calls by chance at k servers that take 1/mu by chance, or
// always (deterministic), first come first served.
func mmk(draw *rand.Rand, rate float64, length time.Duration, k int, took func() float64) *traffic.Record {
	r := blank(length)
	free := make([]float64, k)
	for due := draw.ExpFloat64() / rate; due < length.Seconds(); due += draw.ExpFloat64() / rate {
		first := 0
		for i := range free {
			if free[i] < free[first] {
				first = i
			}
		}
		free[first] = max(free[first], due) + took()
		add(r, 1, time.Duration((free[first]-due)*1e9))
	}
	return r
}

// longer is the share of calls of M/M/k that take longer than t (textbook: Erlang's C).
func longer(rate, mu float64, k int, t float64) float64 {
	a := rate / mu
	sum, term := 0.0, 1.0
	for i := range k {
		sum += term
		term *= a / float64(i+1)
	}
	term *= float64(k) / (float64(k) - a)
	c := term / (sum + term)
	d := float64(k) - 1 - a
	return math.Exp(-mu*t) * (1 + c*(1-math.Exp(-mu*d*t))/d)
}

// root is where a rising function is zero.
func root(low, high float64, f func(float64) float64) float64 {
	for range 60 {
		if middle := (low + high) / 2; f(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// The rate that is found is the true one, of services for which it is known: nearly
// always, since the figures of a run have chance in them.
func TestFoundRateIsTrue(t *testing.T) {
	const length = 30 * time.Second
	for _, c := range []struct {
		name, threshold string
		truth           float64
		run             func(draw *rand.Rand, rate float64) *traffic.Record
	}{
		{
			"M/M/1", "p99<20ms", 1000 - math.Log(100)/0.020,
			func(draw *rand.Rand, rate float64) *traffic.Record {
				return mmk(draw, rate, length, 1, func() float64 { return draw.ExpFloat64() / 1000 })
			},
		},
		{
			"M/M/4", "p95<15ms", root(10, 999, func(rate float64) float64 { return longer(rate, 250, 4, 0.015) - 0.05 }),
			func(draw *rand.Rand, rate float64) *traffic.Record {
				return mmk(draw, rate, length, 4, func() float64 { return draw.ExpFloat64() / 250 })
			},
		},
		{
			// The mean of M/D/1 is (1 + load / (2 - 2 load)) / mu: 5 ms at 8/9.
			"M/D/1", "mean<5ms", 1000 * 8. / 9,
			func(draw *rand.Rand, rate float64) *traffic.Record {
				return mmk(draw, rate, length, 1, func() float64 { return 0.001 })
			},
		},
	} {
		good, runs, worst, mean := 0, 0, 0.0, 0.0
		for seed := range uint64(trials) {
			draw := rand.New(rand.NewPCG(seed, 1))
			s := &service{length: length, run: func(rate float64) *traffic.Record { return c.run(draw, rate) }}
			r, _ := find(t, s.options(t, 100, c.threshold))
			runs += len(r.Steps)
			middle := math.Sqrt(r.Holds * r.Fails)
			off := math.Abs(middle/c.truth - 1)
			worst = max(worst, off)
			mean += (r.Holds/c.truth - 1) / trials
			if r.Outcome == Found && off <= precision {
				good++
			}
		}
		t.Logf("%s: true %.0f/s; %d of %d within 5 %%, the worst is %.1f %% off; what holds is %+.1f %% off in the mean; %.1f runs", c.name, c.truth, good, trials, 100*worst, 100*mean, float64(runs)/trials)
		testkit.Want(t, good >= trials*90/100 && worst <= 0.10 && math.Abs(mean) <= 0.05,
			"%s: only %d of %d within 5 %%, the worst is %.1f %% off", c.name, good, trials, 100*worst)
	}
}

// One run in ten is spoilt by something else.
func TestNoise(t *testing.T) {
	good, low, runs := 0, 0, 0
	for seed := range uint64(noisy) {
		draw := rand.New(rand.NewPCG(seed, 2))
		clean := upTo(1950)
		s := &service{run: func(rate float64) *traffic.Record {
			if draw.IntN(10) == 0 {
				rate = math.Inf(1)
			}
			return clean(rate)
		}}
		r, _ := find(t, s.options(t, 100, "p99<100ms"))
		runs += len(r.Steps)
		if r.Outcome == Found && r.Holds <= 1950 && r.Fails > 1950 {
			good++
		}
		if r.Holds < 1500 {
			low++
		}
	}
	t.Logf("%d of %d searches found the rate, %d ended below three quarters of it; %.1f runs", good, noisy, low, float64(runs)/noisy)
	testkit.Want(t, good >= noisy*97/100, "only %d of %d searches found the rate", good, noisy)
}

// A service that stays broken ends the search, and is not loaded again.
func TestNoRecovery(t *testing.T) {
	broken := false
	s := &service{
		run: func(rate float64) *traffic.Record {
			broken = broken || rate > 500
			return upTo(500)(rate)
		},
		probe: func() *traffic.Record {
			if broken {
				return fail(add(blank(100*ms), 5, 2*time.Second), 5)
			}
			return add(blank(100*ms), 10, 5*ms)
		},
	}
	r, took := find(t, s.options(t, 100, "p99<100ms"))
	testkit.Want(t, r.Outcome == Broken && r.Holds == 400 && !r.Sure && r.Fails == 0 && len(r.Steps) == 4, "%+v", r)
	if r.String() != "holds at 400/s (in one run, not confirmed); the service did not recover: 30s after the run at 800/s "+
		"a few calls one by one had p50 2.001s with 50% errors; before the search p50 5.001ms with 0% errors" {
		t.Error(r)
	}
	testkit.Want(t, took <= 72*time.Second, "it took %v", took)
}

// The search waits until the service has recovered.
func TestRecovery(t *testing.T) {
	var until time.Time
	s := &service{
		run: func(rate float64) *traffic.Record {
			if time.Now().Before(until) {
				return upTo(0)(rate)
			}
			if rate > 500 {
				until = time.Now().Add(20 * time.Second)
			}
			return upTo(500)(rate)
		},
		probe: func() *traffic.Record {
			if time.Now().Before(until) {
				return add(blank(100*ms), 10, time.Second)
			}
			return add(blank(100*ms), 10, 5*ms)
		},
	}
	r, _ := find(t, s.options(t, 100, "p99<100ms"))
	testkit.Want(t, r.Outcome == Found && r.Holds <= 500 && r.Fails > 500, "%v", r)
	for i, step := range r.Steps {
		missed := i > 0 && r.Steps[i-1].Judgement.Verdict == Missed
		testkit.Want(t, missed == (step.Rested > 20*time.Second) && step.Rested <= 26*time.Second, "%v: rested %v", step, step.Rested)
	}
}

func TestOtherOutcomes(t *testing.T) {
	limit := func(most float64) func(float64) *traffic.Record {
		return func(rate float64) *traffic.Record {
			r := upTo(most)(rate)
			if rate > most {
				lag(r, 1000, 995*ms)
			}
			return r
		}
	}
	for _, c := range []struct {
		run   func(float64) *traffic.Record
		first float64
		want  string
		runs  int
	}{
		{upTo(50), 100, "fails even at the first rate, 100/s: missed, p99<100ms (1s); begin with a lower --rate", 3},
		{limit(50), 100, "the generator was the limit at 100/s: not judged: calls were sent late by the generator, the latest by 995.1ms, and p99<100ms hangs on it", 2},
		{limit(1950), 1000, "holds at 1,910/s, the generator was the limit at 2,000/s: not judged: calls were sent late by the generator, the latest by 995.1ms, and p99<100ms hangs on it", 0},
		{upTo(1e9), 300_000, "holds at 1,000,000/s, the highest rate that can be asked for", 4},
		{upTo(0.3), 0.1, "holds at 0.295/s, fails at 0.308/s", 0},
	} {
		r, _ := find(t, (&service{run: c.run}).options(t, c.first, "p99<100ms"))
		if r.String() != c.want || (c.runs > 0 && len(r.Steps) != c.runs) {
			t.Errorf("%d runs: %v", len(r.Steps), r)
		}
	}
}

func TestBounds(t *testing.T) {
	o := (&service{run: upTo(1950)}).options(t, 100, "p99<100ms")
	o.mostRuns = 7
	r, _ := find(t, o)
	if r.Outcome != Bounds || len(r.Steps) != 7 ||
		r.String() != "holds at 1,600/s (in one run, not confirmed), fails at 3,200/s; the search ended early: 7 runs were made, and no more are allowed" {
		t.Errorf("%+v", r)
	}
	o.mostRuns, o.mostTime = 0, time.Minute
	r, took := find(t, o)
	if r.Outcome != Bounds || len(r.Steps) != 5 || took > time.Minute || !strings.HasSuffix(r.String(), "another run would end after the 1m0s that are allowed") {
		t.Errorf("%v after %v, %d runs", r, took, len(r.Steps))
	}
}

func TestShortRunsAreTold(t *testing.T) {
	r, _ := find(t, (&service{run: upTo(200)}).options(t, 100, "p50<10ms", "max<2s", "errors<1%"))
	if len(r.Notes) != 1 || r.Notes[0] != "runs of 10s are short for max<2s: an overload of 5% shows after 40s; give a longer --duration" {
		t.Errorf("%q", r.Notes)
	}
}

// Whoever cancels gets what is known.
func TestCancelled(t *testing.T) {
	for _, after := range []time.Duration{
		50 * ms,                           // in the first probe
		35 * time.Second,                  // in the fourth run
		20*time.Second + 3*100*ms - 50*ms, // in the probe before the third
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			began := time.Now()
			r, err := Find(ctx, (&service{run: upTo(1950)}).options(t, 100, "p99<100ms"))
			testkit.Want(t, err == nil && r.Outcome == Cancelled && time.Since(began) == after,
				"%v: %v, %v after %v", after, r, err, time.Since(began))
			want := map[time.Duration]float64{50 * ms: 0, 35 * time.Second: 400, 20*time.Second + 250*ms: 200}[after]
			testkit.Want(t, r.Holds == want && strings.HasSuffix(r.String(), "; the search was cancelled"), "%v: %v", after, r)
		})
	}
}

func TestWhatCannotBeSearched(t *testing.T) {
	closed := func(float64) *traffic.Record {
		r := add(blank(time.Second), 1, ms)
		r.Loop = traffic.ClosedLoop
		return r
	}
	cut := func(float64) *traffic.Record { return add(blank(time.Second), 1, ms) }
	dead := func() *traffic.Record { return fail(blank(time.Second), 10) }
	for want, change := range map[string]func(*Options, *service){
		`--fail "rate>=450": --find looks for the highest rate`: func(o *Options, _ *service) { o.Thresholds = parse(t, "p99<1s", "rate>=450") },
		"in a closed loop the service sets the rate":            func(_ *Options, s *service) { s.run = closed },
		"the service answers no call before the search":         func(_ *Options, s *service) { s.probe = dead },
		"the probe made no call": func(_ *Options, s *service) {
			s.probe = func() *traffic.Record { return blank(0) }
		},
		"a run was cut short": func(o *Options, _ *service) {
			o.Run = func(context.Context, float64) (Run, error) {
				r := cut(0)
				r.Cut = true
				return Run{Record: r}, nil
			}
		},
		"no timer": func(o *Options, _ *service) {
			o.Run = func(context.Context, float64) (Run, error) { return Run{}, errors.New("no timer") }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{run: upTo(100)}
			o := s.options(t, 100, "p99<100ms")
			change(&o, s)
			_, err := Find(t.Context(), o)
			testkit.Refused(t, err, want)
		})
	}
}

// An error of a run keeps what is known.
func TestErrorKeepsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := (&service{run: upTo(1950)}).options(t, 100, "p99<100ms")
		run := o.Run
		o.Run = func(ctx context.Context, rate float64) (Run, error) {
			if rate > 1000 {
				return Run{}, errors.New("too many open files")
			}
			return run(ctx, rate)
		}
		r, err := Find(t.Context(), o)
		testkit.Want(t, err != nil && r.Holds == 800 && len(r.Steps) == 4 && strings.HasSuffix(r.String(), "; the search failed"),
			"%v, %v", r, err)
	})
}

// Whatever runs say, a search ends, no rate has more than 6 runs, and what it tells is in order.
func TestSearchesEnd(t *testing.T) {
	for seed := range uint64(2000) {
		draw := rand.New(rand.NewPCG(seed, 3))
		var all ladder
		first := math.Exp(draw.Float64()*18 - 5)
		chance := [2]float64{draw.Float64(), draw.Float64() / 2}
		runs := 0
		for rate, more := all.next(first); more; rate, more = all.next(first) {
			if runs++; runs > 400 || rate > traffic.MostRate || rate < min(first, traffic.MostRate) {
				t.Fatalf("seed %d: %d runs, now at %v", seed, runs, rate)
			}
			l := all.at(rate)
			switch x := draw.Float64(); {
			case x < chance[0]:
				l.held++
			case x < chance[0]+chance[1]:
				l.limited++
			default:
				l.missed++
			}
			n := l.held + l.missed + l.limited
			testkit.Need(t, n <= 6, "seed %d: %d runs at %v", seed, n, rate)
		}
		low, high := all.bracket()
		if low == nil && high == nil || low != nil && !low.sure() || high != nil && !high.sure() {
			t.Fatalf("seed %d: %+v, %+v", seed, low, high)
		}
		if low != nil && high != nil && (low.rate >= high.rate || high.rate > low.rate*(1+precision)) {
			t.Fatalf("seed %d: %+v, %+v", seed, low, high)
		}
	}
}
