package trial

import (
	"context"

	"github.com/cabrank/cabrank/lab/internal/ideal"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// against holds a block against a perfect queue for the same calls, where there is one:
// for workers whose calls say how long they take, all alike, with a number of slots, in an
// open loop without deadlines and disturbances.
func (t *trial) against(ctx context.Context, c *cell, plan traffic.Plan, b *result.Block, r *traffic.Record) {
	w := c.arm.Workers
	slots := w.Slots * workersAt(c.arm, c.load)
	method, data, _ := t.Scenario.CallAt(c.load)
	if method != ideal.Method || w.Program != scenario.ProgramWorker || w.Slow.Worker > 0 || len(c.load.Events) > 0 {
		return
	}
	times, err := ideal.TimesOf(ctx, data, plan.Seed)
	if err != nil {
		return // then nobody could have called
	}
	if best, err := ideal.Queue(plan, times, slots); err == nil {
		b.Against(r, best)
	}
}
