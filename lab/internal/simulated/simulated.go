package simulated

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/trial"
	"github.com/cabrank/cabrank/lab/internal/whatif"
)

const (
	// warmTime and measureTime are those of a calibration.
	warmTime    = time.Second
	measureTime = 5 * time.Second
	// prefix begins the targets of simulated arms.
	prefix = "simulated:"
)

// Arms starts the arms of one scenario.
//
// Life: New for each run. Concurrency: as trial.Run does it.
type Arms struct {
	scenario *scenario.Scenario
	start    trial.Starter
	hire     func(command []string, job agent.Job) (trial.Generator, error)
	warm     time.Duration // before a calibration, and how long that
	measured time.Duration // is; shorter in tests

	mu     sync.Mutex
	known  map[string]*learned // by what is called
	stands map[string]*stand   // by target
	count  int
}

// New returns arms that are started and called by what is given, but for those that are
// simulated.
func New(s *scenario.Scenario, start trial.Starter, hire func([]string, agent.Job) (trial.Generator, error)) *Arms {
	return &Arms{
		scenario: s, start: start, hire: hire, warm: warmTime, measured: measureTime,
		known: map[string]*learned{}, stands: map[string]*stand{},
	}
}

// Check says what of a scenario cannot be simulated.
//
// Errors: one line.
func Check(s *scenario.Scenario) error {
	for i := range s.Loads {
		l := &s.Loads[i]
		for _, n := range s.ArmsAt(l) {
			arm := &s.Arms[n]
			if arm.Front.Kind != scenario.FrontSimulated {
				continue
			}
			_, err := policyOf(arm)
			switch {
			case err != nil:
				return fmt.Errorf("arm %q: front.%w", arm.Name, err)
			case arm.Workers.Slots < 1 || arm.Workers.Slow.Worker > 0:
				return fmt.Errorf("arm %q: simulated workers have slots, and none of them is slow", arm.Name)
			case len(l.Events) > 0:
				return fmt.Errorf("arm %q at load %q: events cannot be simulated; list the other arms in its arms", arm.Name, l.Name)
			case !l.Open():
				return fmt.Errorf("arm %q at load %q: closed loops cannot be simulated; list the other arms in its arms", arm.Name, l.Name)
			}
		}
	}
	return nil
}

func policyOf(arm *scenario.Arm) (whatif.Policy, error) {
	if arm.Front.Policy == "" {
		return whatif.Cabrank, nil
	}
	return whatif.ParsePolicy(arm.Front.Policy)
}

// Start is a trial.Starter.
func (a *Arms) Start(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (trial.Stand, error) {
	if arm.Front.Kind != scenario.FrontSimulated {
		return a.start(ctx, arm, load)
	}
	policy, err := policyOf(arm)
	if err != nil {
		return nil, err
	}
	l, err := a.learn(ctx, arm, load)
	if err != nil {
		return nil, err
	}
	workers := arm.Workers.Count
	if load.Workers > 0 {
		workers = load.Workers
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	s := &stand{arms: a, learned: l, policy: policy, workers: workers, slots: arm.Workers.Slots, at: fmt.Sprint(prefix, a.count)}
	a.stands[s.at] = s
	return s, nil
}

// Hire starts a generator; for a simulated arm it is one that calls nobody.
func (a *Arms) Hire(command []string, job agent.Job) (trial.Generator, error) {
	if !strings.HasPrefix(job.Target, prefix) {
		return a.hire(command, job)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.stands[job.Target]
	if !ok {
		return nil, fmt.Errorf("internal error: nothing is simulated at %s", job.Target)
	}
	return &generator{stand: s, plan: job.Plan}, nil
}

// learned is what is known of a service before it is simulated.
type learned struct {
	prepared *lab.Prepared
	byWork   bool          // the request says how long a call works
	rest     time.Duration // what it takes beside that, with the echo
	echo     time.Duration
	times    whatif.Calibration // otherwise
}

// learn calls one worker of an arm, once in a run.
func (a *Arms) learn(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (*learned, error) {
	key := fmt.Sprint(arm.Workers)
	a.mu.Lock()
	l := a.known[key]
	a.mu.Unlock()
	if l != nil {
		return l, nil
	}
	alone := *arm
	alone.Front, alone.Workers.Count = scenario.Front{Kind: scenario.FrontNone}, 1
	quiet := *load
	quiet.Workers, quiet.Events = 0, nil
	worker, err := a.start(ctx, &alone, &quiet)
	if err != nil {
		return nil, err
	}
	defer worker.Close()
	if l, err = a.measure(ctx, worker.Target(), arm.Workers.Slots); err != nil {
		return nil, fmt.Errorf("%s: %w", arm.Name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[key] = l
	return l, nil
}

func (a *Arms) measure(ctx context.Context, target string, slots int) (*learned, error) {
	s := a.scenario
	p, err := lab.Load{
		Address: target, Method: s.Method, Strategy: caller.Single(),
		Data:  method.Data{Name: s.Name, Text: []byte(s.Data), Messages: s.Messages},
		Proto: method.Files{Names: s.Proto, Imports: s.Imports},
	}.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	l := &learned{prepared: p, byWork: isWork(s.Method)}
	o := lab.Calibration{Slots: []int{slots}, Workers: 1, Warmup: a.warm, Duration: a.measured, Seed: s.Seed}
	if !l.byWork {
		all, err := p.Calibrate(ctx, o, nil)
		if err != nil {
			return nil, err
		}
		l.times, l.echo = all[0], all[0].Echo
		return l, nil
	}
	work, err := l.work(ctx, s.Seed)
	if err != nil {
		return nil, err
	}
	l.rest, l.echo, err = p.Beside(ctx, o, work)
	return l, err
}

// notes say what was found out.
func (l *learned) notes(slots int) []string {
	if l.byWork {
		return []string{fmt.Sprintf("Simulated with what one worker takes beside the work of a call, %d at a time: %v, of which an echo is %v.",
			slots, l.rest.Round(10*time.Microsecond), l.echo.Round(10*time.Microsecond))}
	}
	return []string{fmt.Sprintf("Simulated with the times of one worker: %s.", l.times.Source)}
}
