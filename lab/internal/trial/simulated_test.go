package trial

import (
	"context"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/work"
)

const file = `
name: sleepers
about: workers that sleep
question: is it so?
method: METHOD
data: '{"sleep_ms": {{exponential 10}}}'
workers: {program: worker, count: 2, slots: 2, full: queue}
arms:
  - {name: real, about: real, front: cabrank}
  - {name: virtual, about: simulated, front: {kind: simulated, policy: cabrank}}
loads:
  - {rate: 200, arrivals: poisson, duration: 20s, timeout: 5s}
`

// alone is a worker in this process, in place of one that is started.
type alone struct {
	address string
	closed  func()
}

func (a *alone) Target() string                   { return a.address }
func (a *alone) Caller(command []string) []string { return command }
func (a *alone) Usage() []result.Process          { return nil }
func (a *alone) Notes() []string                  { return nil }
func (a *alone) Close()                           { a.closed() }

func (a *alone) Do(context.Context, scenario.Event) (string, error) { return "", nil }

func startAlone(t *testing.T, slots int) Stand {
	t.Helper()
	w, err := work.New(work.Options{Addr: "127.0.0.1:0", Name: "w", Slots: slots, Full: work.Refuse})
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	at, over := make(chan string, 1), make(chan error, 1)
	go func() { over <- w.Serve(ctx, func(a net.Addr) { at <- a.String() }) }() // ends with ctx
	return &alone{address: <-at, closed: func() {
		cancel()
		err := <-over
		testkit.Want(t, err == nil, "%v", err)
	}}
}

// inProcess is a run of a scenario whose worker is in this process.
func inProcess(s *scenario.Scenario, start Starter) *trial {
	return &trial{
		Options: Options{Scenario: s, Start: start, Hire: Hire, Agent: []string{os.Args[0], "agent"}, learnTime: 500 * time.Millisecond},
		run:     &result.Run{}, known: map[string]*service{},
	}
}

// counting starts a worker and counts that.
func counting(t *testing.T, started *int) Starter {
	t.Helper()
	return func(_ context.Context, arm *scenario.Arm, _ *scenario.Load) (Stand, error) {
		*started++
		testkit.Want(t, arm.Front.Kind == scenario.FrontNone && arm.Workers.Count == 1, "started %+v", arm)
		return startAlone(t, arm.Workers.Slots), nil
	}
}

// An arm that is simulated has the calls of the load, with what their requests ask for;
// a worker is called once to find out the rest.
func TestSimulatedArm(t *testing.T) {
	t.Parallel()
	s, started := parsed(t, strings.Replace(file, "METHOD", "cabrank.lab.v1.Worker/Work", 1)), 0
	run := inProcess(s, counting(t, &started))
	for range 2 {
		// M/M/4 at a load of 0.5 and a little; a busy machine makes the rest longer.
		r := simulate(t, run)
		p50 := r.Latency().At(0.5)
		testkit.Want(t, p50 >= 7*time.Millisecond && p50 <= 70*time.Millisecond, "p50 %v", p50)
	}
	testkit.Want(t, started == 1, "%d workers were called", started)
}

// A service that does not say how long its calls work is measured.
func TestAnyService(t *testing.T) {
	t.Parallel()
	text := strings.Replace(file, "METHOD", "grpc.health.v1.Health/Check", 1)
	s, started := parsed(t, strings.Replace(text, `'{"sleep_ms": {{exponential 10}}}'`, "'{}'", 1)), 0
	r := simulate(t, inProcess(s, counting(t, &started)))
	testkit.Want(t, r.Latency().At(0.5) > 0, "p50 %v", r.Latency().At(0.5))
}

// simulate runs the block of the arm.
func simulate(t *testing.T, run *trial) *traffic.Record {
	t.Helper()
	c := &cell{arm: run.Scenario.Arm("virtual"), load: &run.Scenario.Loads[0], seed: 7}
	var b result.Block
	r, err := run.measure(t.Context(), c, &b)
	testkit.Must(t, err)
	if r.FailedShare() > 0.01 || r.Due < 3800 || r.Due > 4200 || len(run.run.Notes) != 2 || len(b.Processes) != 0 || !b.Judged() {
		t.Errorf("%d calls, %.3f failed, %v; %+v", r.Due, r.FailedShare(), run.run.Notes, b)
	}
	return r
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := strings.Replace(file, "METHOD", "a.B/C", 1)
	testkit.Must(t, CheckSimulated(parsed(t, good)))
	for _, tc := range []struct{ old, other, want string }{
		{"policy: cabrank", "policy: fastest", `arm "virtual": front.policy "fastest": want one of cabrank, least_request, p2c, round_robin, random`},
		{"slots: 2, full: queue", "slots: 0, full: unlimited", `arm "virtual": simulated workers have slots`},
		{"rate: 200, arrivals: poisson", "callers: 3", "closed loops cannot be simulated"},
		{"timeout: 5s", "events: [{at: 1s, do: kill, worker: 1}]", "events cannot be simulated"},
	} {
		err := CheckSimulated(parsed(t, strings.Replace(good, tc.old, tc.other, 1)))
		testkit.Want(t, err != nil && strings.Contains(err.Error(), tc.want), "%s: %v, want %s", tc.other, err, tc.want)
	}
}

// A worker with fewer slots is no place to measure.
func TestTooFewSlots(t *testing.T) {
	t.Parallel()
	s := parsed(t, strings.Replace(file, "METHOD", "cabrank.lab.v1.Worker/Work", 1))
	run := inProcess(s, func(context.Context, *scenario.Arm, *scenario.Load) (Stand, error) { return startAlone(t, 1), nil })
	_, err := run.virtual(t.Context(), s.Arm("virtual"), &s.Loads[0])
	if err == nil || !strings.Contains(err.Error(), "were not answered: ResourceExhausted, ") || !strings.Contains(err.Error(), "has each worker so many slots?") {
		t.Error(err)
	}
}

// One pause counts as long as the longest of the others, and what a call takes beside its
// work is found under any mixture of works.
func TestWhatIsLearned(t *testing.T) {
	t.Parallel()
	calls := latency.NewCalls()
	work := func(number uint64) time.Duration { return time.Duration(1+number%2*50) * time.Millisecond }
	for number := range uint64(801) {
		calls.Answer(work(number) + 2*time.Millisecond)
	}
	more := beside(calls.Answered, work)
	testkit.Want(t, more >= 1900*time.Microsecond && more <= 2100*time.Microsecond, "beside the work %v, want 2ms", more)
	calls.Answer(time.Second)
	var s service
	testkit.Must(t, s.read(&traffic.Record{Due: 802, Calls: calls}, 1, 1))
	times, err := s.times(3)
	testkit.Must(t, err)
	for number := range uint64(10_000) {
		d := times(number)
		testkit.Need(t, d <= 60*time.Millisecond, "a call of %v", d)
	}
}

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
	testkit.Want(t, err == nil && slow.Latency().Max() >= 300*time.Millisecond, "longest %v, %v", slow.Latency().Max(), err)
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
		testkit.Want(t, math.Abs(got/want.mean-1) <= 0.05 && math.Abs(p99/want.p99-1) <= 0.08, "%q is off", policy)
	}
}

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
	testkit.Want(t, math.Abs(all.Mean().Seconds()-0.01746) <= 0.0006,
		"the mean is %v over %d calls, want 17.46 ms", all.Mean(), all.Count())
	n := float64(all.Count())
	testkit.Want(t, math.Abs(n-288_000) <= 2000, "%v calls, want those of 900 s", n)
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
		testkit.Want(t, idealQueue(plan(t, o), times, 1) == nil, "%s has an ideal queue", why)
	}
	testkit.Want(t, idealQueue(plan(t, traffic.Options{Rate: "10", Duration: time.Second}), times, 0) == nil, "no slots")
	_, err := timesOf(`{"sleep": 1}`, 1)
	testkit.Refused(t, err, "sleep")
}
