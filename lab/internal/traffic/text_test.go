package traffic

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestParseRate(t *testing.T) {
	for _, tc := range []struct {
		text     string
		duration time.Duration
		want     string
	}{
		{"500", 30 * time.Second, "30s:500"},
		{"500/s", 30 * time.Second, "30s:500"},
		{"0.5", time.Minute, "1m0s:0.5"},
		{"1e3", time.Second, "1s:1000"},
		{"100..500", time.Minute, "1m0s:100..500"},
		{"500..0", time.Minute, "1m0s:500..0"},
		{"10s:100,1s:2000,10s:100", 0, "10s:100,1s:2000,10s:100"},
		{"10s:100,1s:2000,10s:100", 21 * time.Second, "10s:100,1s:2000,10s:100"},
	} {
		p, err := ParseRate(tc.text, tc.duration)
		testkit.Want(t, err == nil && p.String() == tc.want, "%s in %v: %v, %v; want %s", tc.text, tc.duration, p, err, tc.want)
	}
}

func TestParseStages(t *testing.T) {
	for text, want := range map[string]string{
		"30s:30,1m:60,20s:0": "30s:0..30,1m0s:30..60,20s:60..0",
		"0s:60, 1m:60":       "0s:0..60,1m0s:60",
	} {
		p, err := ParseStages(text)
		testkit.Want(t, err == nil && p.String() == want, "%s: %v, %v; want %s", text, p, err, want)
	}
}

// Each row is a line that people may type, and the one that they read.
func TestOptionsRefused(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, "give one of --rate (an open loop), --callers and --stages (closed loops)"},
		{Options{Rate: "5", Callers: 5}, "give one of --rate (an open loop), --callers and --stages (closed loops)"},
		{Options{Rate: "5"}, `--rate "5": how long? give --duration`},
		{Options{Rate: "x", Duration: 1}, `--rate "x": "x" is not a rate from 0 to 1000000 calls per second, such as 500, 100..500 or 10s:100,1s:2000`},
		{Options{Rate: "-1", Duration: 1}, `--rate "-1": "-1" is not a rate from 0 to 1000000 calls per second, such as 500, 100..500 or 10s:100,1s:2000`},
		{Options{Rate: "NaN", Duration: 1}, `--rate "NaN": "NaN" is not a rate from 0 to 1000000 calls per second, such as 500, 100..500 or 10s:100,1s:2000`},
		{Options{Rate: "1..", Duration: 1}, `--rate "1..": "" is not a rate from 0 to 1000000 calls per second, such as 500, 100..500 or 10s:100,1s:2000`},
		{Options{Rate: "5/d", Duration: 1}, `--rate "5/d": "5/d" is not a rate from 0 to 1000000 calls per second, such as 500, 100..500 or 10s:100,1s:2000`},
		{Options{Rate: "0", Duration: time.Second}, `--rate "0": no call would be made: give a rate above 0`},
		{Options{Rate: "x:5", Duration: 1}, `--rate "x:5": "x" is not a length of time from 0s to 24h0m0s, such as 30s`},
		{Options{Rate: "20h:5,20h:5"}, `--rate "20h:5,20h:5": the pieces last more than 24h0m0s`},
		{Options{Rate: "10s:5,10s:5", Duration: time.Minute}, `--rate "10s:5,10s:5": the pieces last 20s, and --duration is 1m0s: leave one of them out`},
		{Options{Rate: "10s:5,5", Duration: 5 * time.Second}, `--rate "10s:5,5": one of several pieces has no length: want LENGTH:RATE, such as 10s:100,1s:2000`},
		{Options{Rate: strings.Repeat("5,", 1000), Duration: 1}, `--rate "` + strings.Repeat("5,", 40) + `": 1001 pieces, at most 1000 are read`},
		{Options{Rate: "5", Duration: 1, Think: 1}, "--think is for --callers and --stages: in an open loop nobody waits for answers"},
		{Options{Rate: "5", Duration: 1, Arrivals: "random"}, `--arrivals "random": want constant or poisson`},
		{Options{Rate: "5", Duration: 1, Most: -1}, "--max-in-flight -1: want 1 to 1000000"},
		{Options{Rate: "5", Duration: -1}, "--duration -1ns: want 0s to 24h0m0s"},
		{Options{Callers: 5}, "how long? give --duration, or a number of calls with --calls"},
		{Options{Rate: "5", Calls: 5, Duration: 1}, "--calls and --duration: how long a --rate goes on is said by one of them"},
		{Options{Rate: "5..6", Calls: 5}, "--calls 5: want one --rate beside it, such as 500"},
		{Options{Rate: "2s:5", Calls: 5}, "--calls 5: want one --rate beside it, such as 500"},
		{Options{Rate: "0.001", Calls: 87}, "--calls 87 at --rate 0.001: they take more than 24h0m0s"},
		{Options{Stages: "1s:5", Calls: 5}, "--calls 5: want a number from 1 up, with --rate, or with --callers and without --warmup"},
		{Options{Callers: 2, Calls: -1, Duration: 1}, "--calls -1: want a number from 1 up, with --rate, or with --callers and without --warmup"},
		{Options{Callers: 2, Calls: 5, Duration: 1, Warmup: 1}, "--calls 5: want a number from 1 up, with --rate, or with --callers and without --warmup"},
		{Options{Callers: -5, Duration: 1}, "--callers -5: want 1 to 100000"},
		{Options{Callers: 5, Duration: 1, Arrivals: "poisson"}, "--arrivals is for --rate: in a closed loop answers decide when calls start"},
		{Options{Stages: "30s:30", Duration: 1}, "--stages has its own lengths: leave --duration out"},
		{Options{Stages: "30"}, `--stages "30": a stage has no length: want LENGTH:CALLERS, such as 30s:30`},
		{Options{Stages: "30s:3.5"}, `--stages "30s:3.5": "3.5" is not a number of callers from 0 to 100000`},
		{Options{Stages: "30s:0"}, `--stages "30s:0": nobody would call: give a stage with a length and callers`},
	} {
		_, err := tc.o.Plan()
		testkit.RefusedBy(t, err, tc.want)
	}
}

func TestPlanInWords(t *testing.T) {
	for want, o := range map[string]Options{
		"open loop, rate 30s:500 constant, seed 0, at most 10000 under way":                     {Rate: "500", Duration: 30 * time.Second},
		"open loop, rate 1s:1..2 poisson, seed 7, at most 10 under way, warm-up 1s, timeout 3s": {Rate: "1..2", Arrivals: "poisson", Duration: time.Second, Seed: 7, Most: 10, Warmup: time.Second, Timeout: 3 * time.Second},
		"closed loop, callers 1s:20, think 100ms":                                               {Callers: 20, Think: 100 * time.Millisecond, Duration: time.Second},
		"closed loop, callers 30s:0..30,1m0s:30..60,20s:60..0":                                  {Stages: "30s:30,1m:60,20s:0"},
	} {
		testkit.Equal(t, plan(t, o).String(), want, "the plan")
	}
}

func FuzzPlan(f *testing.F) {
	for _, text := range []string{"500", "100..500/s", "10s:100,1s:2000,10s:100", "30s:30,1m:60,20s:0", "0s:1,1ns:0", "1e-9", "1ns:1e6", "0..5", "1s:0,1s:5", "0\n0"} {
		f.Add(text, int64(30*time.Second), int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, duration, warmup int64) {
		for _, o := range []Options{
			{Rate: text, Arrivals: "poisson", Duration: time.Duration(duration), Warmup: time.Duration(warmup)},
			{Rate: text, Duration: time.Duration(duration)},
			{Stages: text, Warmup: time.Duration(warmup)},
		} {
			p, err := o.Plan()
			if err != nil {
				testkit.Want(t, !strings.Contains(err.Error(), "\n"), "more than a line: %q", err)
				continue
			}
			checkPlan(t, p)
		}
	})
}

// checkPlan asks a plan for its first calls, and for callers.
func checkPlan(t *testing.T, p Plan) {
	t.Helper()
	d := p.Duration()
	testkit.Want(t, d > 0 && d <= longest, "%v lasts %v", p, d)
	if !p.Open() {
		for at := time.Duration(0); ; {
			next, ok := p.Callers.nextAbove(0.5, at)
			if !ok {
				return
			}
			testkit.Need(t, next >= at && next <= p.Duration(), "%v: from %v on the first caller calls at %v", p, at, next)
			at = next + p.Duration()/10 + 1
		}
	}
	area := p.Rate.Area()
	testkit.Want(t, !math.IsNaN(area) && !math.IsInf(area, 0), "%v makes %v calls", p, area)
	s := newSchedule(p)
	last := time.Duration(0)
	for range 1000 {
		a, ok := s.draw()
		if !ok {
			return
		}
		testkit.Need(t, a.Due >= last && a.Due <= p.Length()+grid && a.Due%grid == 0,
			"%v: a call is due at %v, then one at %v", p, last, a.Due)
		last = a.Due
	}
}

func ExampleParseRate() {
	p, _ := ParseRate("10s:100,1s:2000,10s:100", 0)
	fmt.Printf("%v, %.0f calls in %v\n", p, p.Area(), p.Length())
	// Output: 10s:100,1s:2000,10s:100, 4000 calls in 21s
}
