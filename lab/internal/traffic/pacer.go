package traffic

import (
	"context"
	"time"
)

// longestNap bounds how late a pacer sees that it has to stop.
const longestNap = 20 * time.Millisecond

// pacer starts the calls of an open loop at their moments. It waits for no answer:
// each call that is due goes to a goroutine that has none, to a new one, or, with the
// most calls under way, to nobody.
type pacer struct {
	load    *Load
	ctx     context.Context //nolint:containedctx // of the calls, which live as long as the pacer's goroutines
	jobs    chan Arrival
	workers int       // goroutines that take jobs, at most Plan.Most
	due     []Arrival // for a Driver, which has no such goroutines
	tasks   []Task    // used again
	unsent  *waiting
}

func newPacer(calls context.Context, l *Load) *pacer {
	return &pacer{load: l, ctx: calls, jobs: make(chan Arrival), unsent: newWaiting(l.plan)}
}

// run starts calls until the plan is over or ctx is cancelled, and returns when that
// was, since the start of the load. All calls that were due until then were started,
// or recorded as unsent.
func (p *pacer) run(ctx context.Context) (time.Duration, error) {
	defer close(p.jobs)
	defer p.drive()
	s := newSchedule(p.load.plan)
	length := p.load.plan.Length()
	for next, more := s.draw(); ; {
		now := p.load.now()
		if more && next.Due <= now {
			if ctx.Err() != nil {
				return min(next.Due, length), nil
			}
			p.start(next)
			next, more = s.draw()
			continue
		}
		p.drive()
		if now >= length && !more {
			return length, nil
		}
		if ctx.Err() != nil {
			return min(now, length), nil
		}
		until := length
		if more {
			until = next.Due
		}
		if err := p.load.rest.Sleep(min(until-now, longestNap)); err != nil {
			return now, err
		}
	}
}

// start hands out one call.
func (p *pacer) start(a Arrival) {
	plan := &p.load.plan
	if p.load.under.Load() >= int64(plan.Most) {
		p.refuse(a)
		return
	}
	p.load.enter()
	if p.load.driver != nil {
		if p.due = append(p.due, a); len(p.due) == mostTasks {
			p.drive()
		}
		return
	}
	select {
	case p.jobs <- a:
	default:
		if p.workers < plan.Most {
			t := p.load.tallies[p.workers%len(p.load.tallies)]
			p.workers++
			p.load.calls.Go(func() { p.work(t, a) })
			return
		}
		p.jobs <- a // fewer calls than goroutines are under way: one is on its way back
	}
}

// refuse records a call that cannot be sent, with the age that it reaches at its
// deadline, or without one at the end of the run.
func (p *pacer) refuse(a Arrival) {
	t := p.load.tallies[0]
	if !t.full(a) {
		return
	}
	if timeout := p.load.plan.Timeout; timeout > 0 {
		t.ages(timeout, 1)
		return
	}
	p.unsent.add(a.Due)
}

// work makes one call after the other until the pacer ends.
func (p *pacer) work(t *tally, a Arrival) {
	p.call(t, a)
	for a := range p.jobs {
		p.call(t, a)
	}
}

func (p *pacer) call(t *tally, a Arrival) {
	f := flight{load: p.load, tally: t, Arrival: a, begun: p.load.now()}
	if call, ok := f.begin(); ok {
		answer := p.load.client.Call(p.ctx, call)
		f.end(&answer, p.load.endOf(&answer, p.load.now()))
	}
}
