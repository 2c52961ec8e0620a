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
	stop := make(chan struct{})
	var stopped atomic.Bool
	for i, all := l.plan.Part, l.plan.callers(); i < all; i += l.plan.parts() {
		c := caller{
			flight: flight{load: l, tally: l.tallies[i%len(l.tallies)]}, index: uint64(i), all: uint64(all), length: length, profile: profile,
			stop: stop, stopped: &stopped, free: make(chan struct{}, 1),
		}
		l.calls.Go(func() { c.run(calls) })
	}
	end := length
	select {
	case <-l.allMade():
		end, l.made = min(l.now(), length), true
	case <-time.After(length - l.now()):
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
	flight // the present call

	index, all uint64        // this caller, and how many there are
	made       uint64        // calls so far
	next       time.Duration // when the next one may begin
	profile    Profile
	length     time.Duration   // of the profile
	stop       <-chan struct{} // closed when no more calls start
	stopped    *atomic.Bool    // the same, cheaper to ask
	free       chan struct{}   // a Driver has no call of this caller
}

func (c *caller) run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		begin, ok := c.profile.nextAbove(c.level(), c.next)
		if !ok || !c.wait(pause, begin) {
			return
		}
		call, ok := c.take(c.load.now())
		if !ok {
			return
		}
		if driver := c.load.driver; driver != nil {
			driver.Start(ctx, []Task{{call, c}})
			<-c.free
			continue
		}
		for more := true; more; {
			answer := c.load.client.Call(ctx, call)
			now := c.load.now()
			call, more = c.goOn(&answer, c.load.endOf(&answer, now), now)
		}
	}
}

func (c *caller) level() float64 { return float64(c.index) + 0.5 }

// take begins a call, unless there is none to make at that moment.
func (c *caller) take(now time.Duration) (call Call, ok bool) {
	if c.stopped.Load() || now >= c.length {
		return call, false
	}
	number, left := c.number()
	if !left {
		return call, false
	}
	c.made++
	c.load.enter()
	c.Arrival, c.begun = Arrival{Number: number, Due: now, Counted: now >= c.load.plan.Warmup}, now
	return c.begin()
}

// End is that of a call of a Driver.
func (c *caller) End(answer *Answer) (next Call, more bool) {
	at := c.load.endOf(answer, 0)
	next, more = c.goOn(answer, at, at)
	if !more {
		c.free <- struct{}{}
	}
	return next, more
}

// goOn records how and when the call has ended, and takes the next one if that can begin now.
func (c *caller) goOn(answer *Answer, ended, now time.Duration) (next Call, more bool) {
	well := c.end(answer, ended)
	c.next = now
	if well || !c.load.plan.RetryAtOnce {
		c.next += c.load.plan.Think
	}
	if begin, ok := c.profile.nextAbove(c.level(), c.next); !well || !ok || begin > now {
		return next, false
	}
	return c.take(now)
}

// number returns that of the caller's next call, and false when all are made. Where
// their number is given, who is free takes the next one.
func (c *caller) number() (number uint64, left bool) {
	plan := &c.load.plan
	if plan.Calls == 0 {
		return c.index + c.made*c.all, true
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
