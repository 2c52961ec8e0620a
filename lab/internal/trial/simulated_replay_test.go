package trial

import (
	"math"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// always is workers whose calls take one time, an echo of 1 ms included.
func always(d time.Duration, workers int) *virtual {
	took := latency.New()
	took.Record(d)
	return &virtual{service: &service{echo: time.Millisecond, took: took, top: 1}, workers: workers, slots: 1}
}

// Two slots and calls that come every 10 ms: those of 15 ms do not wait, those of 30 ms
// wait longer and longer, until their deadlines.
func TestReplay(t *testing.T) {
	t.Parallel()
	plan, err := traffic.Options{Rate: "100", Duration: time.Second, Warmup: 100 * time.Millisecond}.Plan()
	testkit.Must(t, err)
	record, err := always(16*time.Millisecond, 2).replay(plan)
	if err != nil || record.Due != 100 || record.Calls.Answered.Count() != 100 || record.Warmup.Calls != 10 || record.Counted != time.Second ||
		record.Latency().Max().Round(100*time.Microsecond) != 16*time.Millisecond || record.Timeline.Intervals[0].Answered != 100 {
		t.Errorf("%+v, %v", record, err)
	}
	s := always(31*time.Millisecond, 2)
	slow, err := s.replay(plan)
	if err != nil || slow.Latency().Max() < 300*time.Millisecond {
		t.Errorf("longest %v, %v", slow.Latency().Max(), err)
	}
	plan.Timeout, plan.Rate[0].Length = 300*time.Millisecond, 20*time.Second
	for _, s.policy = range []ranksim.Policy{"", ranksim.LeastRequest, ranksim.P2C, ranksim.RoundRobin, ranksim.Random} {
		late, err := s.replay(plan)
		if err != nil || late.FailedShare() < 0.3 || s.policy == "" && late.FailedShare() > 0.5 || late.Calls.Answered.Max() > 301*time.Millisecond {
			t.Errorf("%q: %.2f failed, longest %v, %v", s.policy, late.FailedShare(), late.Calls.Answered.Max(), err)
		}
	}
}

// One queue for all is M/M/4: Erlang's C. A worker chosen by chance is M/M/1 with its part
// of the calls.
func TestTheory(t *testing.T) {
	t.Parallel()
	const mean = 20 * time.Millisecond
	plan, err := traffic.Options{Rate: "160", Arrivals: "poisson", Duration: 1500 * time.Second, Seed: 1}.Plan()
	testkit.Must(t, err)
	exponential := latency.New()
	for i := range 50_000 {
		exponential.Record(time.Duration(-math.Log1p(-(float64(i)+0.5)/50_000) * float64(mean)))
	}
	s := &virtual{service: &service{took: exponential, top: 1}, workers: 4, slots: 1}
	for policy, want := range map[ranksim.Policy]struct{ mean, p99 float64 }{
		"": {1.7455, 6.893}, ranksim.Random: {5, 5 * math.Log(100)},
	} {
		s.policy = policy
		r, err := s.replay(plan)
		testkit.Must(t, err)
		got, p99 := float64(r.Latency().Mean())/float64(mean), float64(r.Latency().At(0.99))/float64(mean)
		t.Logf("%q: mean %.3f, theory %.3f; p99 %.2f, theory %.2f", policy, got, want.mean, p99, want.p99)
		if math.Abs(got/want.mean-1) > 0.05 || math.Abs(p99/want.p99-1) > 0.08 {
			t.Errorf("%q is off", policy)
		}
	}
}
