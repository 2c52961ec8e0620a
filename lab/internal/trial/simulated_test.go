package trial

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

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
		if err := <-over; err != nil {
			t.Error(err)
		}
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
		if arm.Front.Kind != scenario.FrontNone || arm.Workers.Count != 1 {
			t.Errorf("started %+v", arm)
		}
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
		if p50 := r.Latency().At(0.5); p50 < 7*time.Millisecond || p50 > 70*time.Millisecond {
			t.Errorf("p50 %v", p50)
		}
	}
	if started != 1 {
		t.Errorf("%d workers were called", started)
	}
}

// A service that does not say how long its calls work is measured.
func TestAnyService(t *testing.T) {
	t.Parallel()
	text := strings.Replace(file, "METHOD", "grpc.health.v1.Health/Check", 1)
	s, started := parsed(t, strings.Replace(text, `'{"sleep_ms": {{exponential 10}}}'`, "'{}'", 1)), 0
	if r := simulate(t, inProcess(s, counting(t, &started))); r.Latency().At(0.5) <= 0 {
		t.Errorf("p50 %v", r.Latency().At(0.5))
	}
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
	if err := CheckSimulated(parsed(t, good)); err != nil {
		t.Error(err)
	}
	for _, tc := range []struct{ old, other, want string }{
		{"policy: cabrank", "policy: fastest", `arm "virtual": front.policy "fastest": want one of cabrank, least_request, p2c, round_robin, random`},
		{"slots: 2, full: queue", "slots: 0, full: unlimited", `arm "virtual": simulated workers have slots`},
		{"rate: 200, arrivals: poisson", "callers: 3", "closed loops cannot be simulated"},
		{"timeout: 5s", "events: [{at: 1s, do: kill, worker: 1}]", "events cannot be simulated"},
	} {
		err := CheckSimulated(parsed(t, strings.Replace(good, tc.old, tc.other, 1)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.other, err, tc.want)
		}
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
	if more := beside(calls.Answered, work); more < 1900*time.Microsecond || more > 2100*time.Microsecond {
		t.Errorf("beside the work %v, want 2ms", more)
	}
	calls.Answer(time.Second)
	var s service
	testkit.Must(t, s.read(&traffic.Record{Due: 802, Calls: calls}, 1, 1))
	times, err := s.times(3)
	testkit.Must(t, err)
	for number := range uint64(10_000) {
		if d := times(number); d > 60*time.Millisecond {
			t.Fatalf("a call of %v", d)
		}
	}
}
