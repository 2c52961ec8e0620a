package trial

import (
	"math"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

func plan(t *testing.T, o traffic.Options) traffic.Plan {
	t.Helper()
	p, err := o.Plan()
	testkit.Must(t, err)
	return p
}

// With exponential service at 80 % of four slots the mean is that of the Erlang C
// formula (M/M/4): 10 ms of service and 7.46 ms of waiting.
func TestErlangC(t *testing.T) {
	p := plan(t, traffic.Options{Rate: "320", Arrivals: "poisson", Duration: 900 * time.Second, Warmup: 5 * time.Second, Seed: 7})
	times, err := timesOf(`{"sleep_ms": {{exponential 10}}}`, 7)
	testkit.Must(t, err)
	all := idealQueue(p, times, 4)
	if mean := all.Mean().Seconds(); math.Abs(mean-0.01746) > 0.0006 {
		t.Errorf("the mean is %v over %d calls, want 17.46 ms", all.Mean(), all.Count())
	}
	if n := float64(all.Count()); math.Abs(n-288_000) > 2000 {
		t.Errorf("%v calls, want those of 900 s", n)
	}
}

// Constant arrivals below capacity never wait, whoever takes a part of the plan.
func TestNobodyWaits(t *testing.T) {
	p := plan(t, traffic.Options{Rate: "100", Duration: 2 * time.Second})
	p.Part, p.Parts = 1, 3
	times, err := timesOf(`{"sleep_ms": 12, "cpu_ms": 3}`, 1)
	testkit.Must(t, err)
	all := idealQueue(p, times, 2)
	if all.Count() != 200 || all.Max()-all.At(0) > 20*time.Microsecond || all.Mean().Round(100*time.Microsecond) != 15*time.Millisecond {
		t.Errorf("%d calls of %v to %v", all.Count(), all.At(0), all.Max())
	}
}

func TestNoIdeal(t *testing.T) {
	times := func(uint64) time.Duration { return time.Millisecond }
	for why, o := range map[string]traffic.Options{
		"a closed loop":         {Callers: 3, Duration: time.Second},
		"calls with a deadline": {Rate: "10", Duration: time.Second, Timeout: time.Second},
	} {
		if idealQueue(plan(t, o), times, 1) != nil {
			t.Errorf("%s has an ideal queue", why)
		}
	}
	if idealQueue(plan(t, traffic.Options{Rate: "10", Duration: time.Second}), times, 0) != nil {
		t.Error("no slots")
	}
	_, err := timesOf(`{"sleep": 1}`, 1)
	testkit.Refused(t, err, "sleep")
}
