package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// target is where the arm is that is simulated at the moment.
const target = "simulated"

// Arms starts the arms of one scenario.
//
// Life: NewArms for each run. Concurrency: none; Run has one arm at a time.
type Arms struct {
	scenario *scenario.Scenario
	start    Starter
	hire     func(command []string, job agent.Job) (Generator, error)
	agent    []string
	measured time.Duration // how long a worker is called; shorter in tests

	known map[string]*service // by what works
	now   *virtual
}

// NewArms returns arms that are started and called by what is given, but for those that are
// simulated. agent is the command of a generator.
func NewArms(s *scenario.Scenario, start Starter, hire func([]string, agent.Job) (Generator, error), agent []string) *Arms {
	return &Arms{scenario: s, start: start, hire: hire, agent: agent, measured: measureTime, known: map[string]*service{}}
}

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
			_, err := balanceOf(arm.Front.Policy)
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

// Start is a Starter.
func (a *Arms) Start(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (Stand, error) {
	if arm.Front.Kind != scenario.FrontSimulated {
		return a.start(ctx, arm, load)
	}
	balance, err := balanceOf(arm.Front.Policy)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(arm.Workers)
	if a.known[key] == nil {
		if a.known[key], err = a.learn(ctx, arm, load); err != nil {
			delete(a.known, key)
			return nil, fmt.Errorf("%s: %w", arm.Name, err)
		}
	}
	workers := arm.Workers.Count
	if load.Workers > 0 {
		workers = load.Workers
	}
	a.now = &virtual{service: a.known[key], balance: balance, workers: workers, slots: arm.Workers.Slots}
	return a.now, nil
}

// Hire starts a generator; for a simulated arm it is one that calls nobody.
func (a *Arms) Hire(command []string, job agent.Job) (Generator, error) {
	if job.Target != target {
		return a.hire(command, job)
	}
	return &generator{stand: a.now, plan: job.Plan}, nil
}

// virtual is an arm that does not run.
type virtual struct {
	service        *service
	balance        rank.Balance
	workers, slots int
}

func (s *virtual) Target() string                   { return target }
func (s *virtual) Caller(command []string) []string { return command }
func (s *virtual) Usage() []result.Process          { return nil }
func (s *virtual) Notes() []string                  { return []string{s.service.about} }
func (s *virtual) Close()                           {}

func (s *virtual) Do(context.Context, scenario.Event) (string, error) {
	return "", errors.New("nothing happens to what is simulated")
}

// generator simulates a load in place of making it.
type generator struct {
	stand *virtual
	plan  traffic.Plan
}

func (g *generator) PID() int               { return 0 }
func (g *generator) Ready() (string, error) { return "simulated, nobody is called", nil }
func (g *generator) Begin(time.Time)        {}
func (g *generator) Stop()                  {}
func (g *generator) Live() traffic.Live     { return traffic.Live{} }
func (g *generator) Close()                 {}

// Wait returns what the load comes to. Of several generators the first has all calls.
func (g *generator) Wait() (*agent.Answer, error) {
	first := g.plan.Part == 0
	g.plan.Part, g.plan.Parts = 0, 0
	answer := &agent.Answer{Took: g.plan.Length(), Cores: 1}
	var err error
	if first {
		answer.Record, err = g.stand.replay(g.plan)
	} else {
		answer.Record, err = traffic.NewReplay(g.plan).Record()
	}
	return answer, err
}
