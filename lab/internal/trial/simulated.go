package trial

import (
	"context"
	"fmt"

	"github.com/cabrank/cabrank/internal/rank"
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

// virtual is an arm that does not run.
type virtual struct {
	service        *service
	balance        rank.Balance
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
	t.against(ctx, c, plan, b, record)
	b.Marks = result.Marks(record, 0, 0)
	return record, nil
}

// virtual returns an arm as it is at a load, when one of its workers has been called.
func (t *trial) virtual(ctx context.Context, arm *scenario.Arm, load *scenario.Load) (*virtual, error) {
	balance, err := balanceOf(arm.Front.Policy)
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
	return &virtual{service: t.known[key], balance: balance, workers: workersAt(arm, load), slots: arm.Workers.Slots}, nil
}
