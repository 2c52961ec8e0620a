package trial

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/health/grpc_health_v1" // what an echo calls

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// CheckSimulated says what of a scenario cannot be simulated.
//
// Errors: one line.
func CheckSimulated(s *scenario.Scenario) error {
	for i := range s.Loads {
		l := &s.Loads[i]
		for _, n := range s.ArmsAt(l) {
			arm := &s.Arms[n]
			if arm.Front.Kind != scenario.FrontSimulated {
				continue
			}
			_, err := policyOf(arm.Front.Policy)
			switch {
			case err != nil:
				return fmt.Errorf("arm %q: front.%w", arm.Name, err)
			case arm.Workers.Slots < 1:
				return fmt.Errorf("arm %q: simulated workers have slots", arm.Name)
			case len(l.Events) > 0:
				return fmt.Errorf("arm %q at load %q: events cannot be simulated; list the other arms in its arms", arm.Name, l.Name)
			case !l.Open():
				return fmt.Errorf("arm %q at load %q: closed loops cannot be simulated; list the other arms in its arms", arm.Name, l.Name)
			}
		}
	}
	return nil
}

// virtual is an arm that does not run.
type virtual struct {
	service        *service
	policy         ranksim.Policy // "": Cabrank
	workers, slots int
}

// simulate is measure for an arm that is simulated. What others do to the machine changes
// nothing in virtual time.
func (t *trial) simulate(ctx context.Context, c *cell, plan traffic.Plan, b *result.Block) (*traffic.Record, error) {
	arm, err := t.virtual(ctx, c.arm, c.load)
	if err != nil {
		return nil, &startError{err}
	}
	t.note(arm.service.about)
	t.note(c.arm.Name + ": simulated, nobody is called.")
	record, err := arm.replay(plan)
	if err != nil {
		return nil, err
	}
	b.Measure(record, workersAt(c.arm, c.load))
	t.against(c, plan, b, record)
	b.Marks = result.Marks(record, 0, 0)
	return record, nil
}

// virtual returns an arm as it is at a load, when one of its workers has been called.
func (t *trial) virtual(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (*virtual, error) {
	policy, err := policyOf(arm.Front.Policy)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(arm.Workers)
	if t.known[key] == nil {
		learned, err := t.learn(ctx, arm, load)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arm.Name, err)
		}
		t.known[key] = learned
	}
	return &virtual{service: t.known[key], policy: policy, workers: workersAt(arm, load), slots: arm.Workers.Slots}, nil
}

const (
	// measureTime is how long one worker is called; knownCalls end it earlier where
	// requests say how long they take.
	measureTime = 5 * time.Second
	knownCalls  = 2000
	// Echoes are calls of echoMethod, one at a time with pauses between them, as calls of
	// handlers that take some time are. A server without this service says so at once,
	// which is as good.
	echoMethod = "grpc.health.v1.Health/Check"
	echoPause  = 5 * time.Millisecond
	// leastTimes of the calls have to be answered, and mostFailed is the share that may
	// fail, and that counts as strays.
	leastTimes = 20
	mostFailed = 0.01
)

// service is what is known of a worker: how long its calls take with all slots busy while
// nobody waits. echo is the part of it in which no slot is taken: the median of a call that
// does nothing. Not each quantile off the same one of the echo: slow calls and slow echoes
// have nothing to do with each other.
type service struct {
	about string
	echo  time.Duration
	// Where requests say how long they take, data draws them and beside is what comes to
	// that; otherwise took is drawn from, up to the quantile top.
	data   string
	beside time.Duration
	took   *latency.Histogram
	top    float64
}

// times returns how long the call of a number takes, echo included.
func (s *service) times(seed uint64) (func(number uint64) time.Duration, error) {
	if s.data == "" {
		return func(number uint64) time.Duration {
			return s.took.At(s.top * rand.New(rand.NewPCG(seed, number)).Float64())
		}, nil
	}
	work, err := timesOf(s.data, seed)
	return func(number uint64) time.Duration { return work(number) + s.beside }, err
}

func (t *trial) learn(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (*service, error) {
	alone, quiet := *arm, *load
	alone.Front, alone.Workers.Count = scenario.Front{Kind: scenario.FrontNone}, 1
	quiet.Workers, quiet.Events = 0, nil
	worker, err := t.Start(ctx, &alone, &quiet)
	if err != nil {
		return nil, err
	}
	defer worker.Close()
	s, slots := t.Scenario, arm.Workers.Slots
	echo := agent.Job{Calls: caller.Calls{Method: echoMethod, Data: method.Data{Name: "data", Text: []byte("{}")}}}
	echoes, err := t.call(ctx, worker, echo, traffic.Options{Callers: 1, Think: echoPause})
	if err != nil {
		return nil, err
	}
	answers := echoes.Latency()
	answers.Merge(echoes.Calls.Failed)
	l := &service{echo: answers.At(0.5)}
	job, err := jobOf(s, &scenario.Load{}, s.Seed)
	if err != nil {
		return nil, err
	}
	options := traffic.Options{Callers: slots, Seed: s.Seed}
	if s.Method == workMethod {
		l.data, options.Calls = s.Data, knownCalls
	} else {
		options.Warmup = t.learnTime / 5
	}
	r, err := t.call(ctx, worker, job, options)
	if err != nil {
		return nil, err
	}
	err = l.read(r, slots, s.Seed)
	return l, err
}

func (t *trial) call(ctx context.Context, worker Stand, job agent.Job, o traffic.Options) (*traffic.Record, error) {
	o.Duration = t.learnTime
	plan, err := o.Plan()
	if err != nil {
		return nil, err
	}
	job.Target, job.Plan = worker.Target(), plan
	crew, err := t.crew(worker, "", []agent.Job{job}, func(string) {})
	if err != nil {
		return nil, err
	}
	defer crew.close()
	r, _, err := crew.run(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return r, context.Cause(ctx)
}

// read finds out the times from a load of as many callers as there are slots.
func (s *service) read(r *traffic.Record, slots int, seed uint64) error {
	s.took = r.Calls.Answered
	n, failed := s.took.Count(), r.Calls.Failed.Count()
	if float64(failed) > mostFailed*float64(r.Due) {
		why := r.Failures[0]
		return fmt.Errorf("with %d calls at a time %d of %d were not answered: %s, %.100s; has each worker so many slots?", slots, failed, r.Due, codes.Code(why.Code), why.Message)
	}
	if n < leastTimes {
		return fmt.Errorf("with %d calls at a time %d were answered in %v, %d are needed", slots, n, r.Counted, leastTimes)
	}
	// One pause of a worker meets a call in each slot, and says nothing of how often there
	// are any: so many of the longest count as the longest of the others.
	s.top = 1 - min(float64(slots)/float64(n), mostFailed)
	what := fmt.Sprintf("the times of one worker: %d calls, %d at a time, with %v for an echo", n, slots, s.echo.Round(10*time.Microsecond))
	if s.data != "" {
		work, err := timesOf(s.data, seed)
		if err != nil {
			return err
		}
		s.beside = beside(s.took, work)
		what = fmt.Sprintf("what one worker takes beside the work of a call, %d at a time: %v, of which an echo is %v",
			slots, s.beside.Round(10*time.Microsecond), s.echo.Round(10*time.Microsecond))
	}
	s.about = "Simulated with " + what + "."
	return nil
}

// beside is what the first calls of a load took longer than their work: the median of what
// nine quantiles differ by, for at any one of them there may be a step.
func beside(took *latency.Histogram, work func(number uint64) time.Duration) time.Duration {
	known := latency.New()
	for number := range took.Count() {
		known.Record(work(uint64(number)))
	}
	var more []time.Duration
	for tenth := 1; tenth < 10; tenth++ {
		more = append(more, took.At(float64(tenth)/10)-known.At(float64(tenth)/10))
	}
	slices.Sort(more)
	return max(more[len(more)/2], 0)
}

// cabrank binds late: calls wait in one queue, bounded in length and time, and one that
// cannot end before its deadline is refused. The other policies choose when a call comes,
// and it waits at that worker, in the order of arrival, for as long as its caller does.
// Each knows all calls, as one balancer in front of all workers does.
const cabrank = "cabrank"

// The queue of `cabrank run` without flags.
const (
	queueLength  = 1000
	queueTimeout = 30 * time.Second
)

// policyOf reads the name of a policy; without any it is Cabrank.
//
// Errors: one line that lists them.
func policyOf(name string) (ranksim.Policy, error) {
	names := []string{cabrank, "least_request", "p2c", "round_robin", "random"}
	switch name = cmp.Or(name, cabrank); {
	case !slices.Contains(names, name):
		return "", fmt.Errorf("policy %.40q: want one of %s", name, strings.Join(names, ", "))
	case name == cabrank:
		return "", nil
	}
	return ranksim.Policy(name), nil
}

// records gives the calls to workers behind a policy. Handlers run to their end when their
// caller has gone, as those of Ruby and of Python's threads do.
func (s *virtual) records(calls []ranksim.Call, seed uint64) []ranksim.Record {
	if s.policy != "" {
		return ranksim.Early(s.policy, calls, s.workers, s.slots, ranksim.Handlers{RunOn: true}, seed).Records
	}
	return ranksim.Run(ranksim.System{
		Rank: rank.Options{QueueLength: queueLength}, QueueTimeout: queueTimeout,
		Workers: ranksim.Alike(s.workers, ranksim.Worker{Slots: s.slots, RunsOn: true, OnCancel: rank.Hold}),
	}, calls).Records
}

// replay gives the calls of an open loop to the workers, and returns what a run with real
// ones would have measured.
//
// Errors: one line, for a template that is none of the method's.
func (s *virtual) replay(plan traffic.Plan) (*traffic.Record, error) {
	takes, err := s.service.times(plan.Seed)
	if err != nil {
		return nil, err
	}
	echo := s.service.echo
	var arrivals []traffic.Arrival
	var calls []ranksim.Call
	for a := range plan.Arrivals() {
		c := ranksim.Call{Arrives: a.Due, Service: max(takes(a.Number)-echo, 0)}
		if plan.Timeout > 0 {
			c.Deadline = a.Due + max(plan.Timeout-echo, 1)
		}
		arrivals, calls = append(arrivals, a), append(calls, c)
	}
	replay := traffic.NewReplay(plan)
	for i, r := range s.records(calls, plan.Seed) {
		replay.End(arrivals[i], r.Sojourn+echo, traffic.Answer{Code: uint32(codeOf(r.Ending))})
	}
	return replay.Record()
}

func codeOf(e ranksim.Ending) codes.Code {
	switch e {
	case ranksim.Answered:
		return codes.OK
	case ranksim.Refused, ranksim.Exhausted:
		return codes.ResourceExhausted
	default:
		return codes.DeadlineExceeded
	}
}
