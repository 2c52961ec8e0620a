package traffic

import (
	"context"
	"sync/atomic"
	"time"
)

// callers runs the callers of a closed loop until the plan is over or ctx is
// cancelled, and returns when that was. The calls that they have under way go on. A
// plan with a number of calls is over when the last of them has ended.
func (l *Load) callers(ctx, calls context.Context) time.Duration {
	profile := l.plan.Callers.after(l.plan.Warmup)
	length := l.plan.Length()
	over := time.NewTimer(length - l.now())
	defer over.Stop()
	stop := make(chan struct{})
	var stopped atomic.Bool
	for i := l.plan.Part; i < l.plan.callers(); i += l.plan.parts() {
		c := caller{
			load: l, index: uint64(i), profile: profile, tally: l.tallies[i%len(l.tallies)],
			stop: stop, stopped: &stopped,
		}
		l.calls.Go(func() { c.run(calls) })
	}
	end := length
	select {
	case <-l.allMade():
		end, l.made = min(l.now(), length), true
	case <-over.C:
	case <-ctx.Done():
		end = min(l.now(), length)
	}
	stopped.Store(true)
	close(stop)
	return end
}

// caller makes one call after the other while the plan wants it: caller i calls
// while the level of the plan, rounded to a whole number, is above i.
type caller struct {
	load    *Load
	index   uint64
	profile Profile
	tally   *tally
	stop    <-chan struct{} // closed when no more calls start
	stopped *atomic.Bool    // the same, cheaper to ask
}

func (c *caller) run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	next := time.Duration(0)
	for made := uint64(0); !c.stopped.Load(); made++ {
		begin, ok := c.profile.nextAbove(float64(c.index)+0.5, next)
		if !ok || !c.wait(pause, begin) {
			return
		}
		now := c.load.now()
		if now >= c.load.plan.Length() {
			return
		}
		number, left := c.number(made)
		if !left {
			return
		}
		c.load.enter()
		answered := c.load.call(ctx, c.tally, arrival{number: number, due: now, counted: now >= c.load.plan.Warmup})
		next = c.load.now()
		if answered || !c.load.plan.RetryAtOnce {
			next += c.load.plan.Think
		}
	}
}

// number returns that of the caller's next call, and false when all are made. Where
// their number is given, who is free takes the next one.
func (c *caller) number(made uint64) (number uint64, left bool) {
	plan := &c.load.plan
	if plan.Calls == 0 {
		return c.index + made*uint64(plan.callers()), true
	}
	number = uint64(plan.Part) + (c.load.taken.Add(1)-1)*uint64(plan.parts())
	return number, number < uint64(plan.Calls)
}

// allMade is closed when the given number of calls has ended; it is nil without one.
func (l *Load) allMade() <-chan struct{} {
	if l.plan.Calls == 0 {
		return nil
	}
	made := make(chan struct{})
	go func() { // ends with the calls, which Run waits for
		l.calls.Wait()
		close(made)
	}()
	return made
}

// wait returns at a moment, or with false when no more calls start.
func (c *caller) wait(pause *time.Timer, until time.Duration) bool {
	d := until - c.load.now()
	if d <= 0 {
		return true
	}
	pause.Reset(d)
	select {
	case <-pause.C:
		return true
	case <-c.stop:
		return false
	}
}
