package lab

import (
	"context"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// probeLength is how long one caller asks the service between the runs of a search.
const probeLength = time.Second

// Find looks for the highest rate at which thresholds hold. Runs are as o says, but for
// their rate; told is called after each.
//
// Errors: as those of goal.Find, and of o.
func (p *Prepared) Find(ctx context.Context, o traffic.Options, first float64, thresholds goal.Thresholds, told func(goal.Step)) (goal.Result, error) {
	probe, err := traffic.Options{Callers: 1, Duration: probeLength, Timeout: o.Timeout, Seed: o.Seed}.Plan()
	if err != nil {
		return goal.Result{}, err
	}
	if _, err := p.Run(ctx, probe, nil); err != nil { // the first calls to a service are slow
		return goal.Result{}, err
	}
	return goal.Find(ctx, goal.Options{
		Thresholds: thresholds, First: first,
		Told: func(s goal.Step, _ *traffic.Record) { told(s) },
		Run: func(ctx context.Context, rate float64) (goal.Run, error) {
			o.Rate = strconv.FormatFloat(rate, 'f', -1, 64)
			plan, err := o.Plan()
			if err != nil {
				return goal.Run{}, err
			}
			done, err := p.Run(ctx, plan, nil)
			return goal.Run{Record: done.Record, Busy: done.Busy}, err
		},
		Probe: func(ctx context.Context) (*traffic.Record, error) {
			done, err := p.Run(ctx, probe, nil)
			return done.Record, err
		},
	})
}
