package traffic

import (
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// mostMoments bounds the memory of calls that were not sent, at the price that their ages are
// up to a hundred-thousandth of the plan too long.
const mostMoments = 100_000

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
	// unsent are calls that were not sent and have no deadline, by when they were due: they
	// grow old until the end of the run.
	unsent map[time.Duration]int64
}

func newPacer(calls context.Context, l *Load) *pacer {
	return &pacer{load: l, ctx: calls, jobs: make(chan Arrival), unsent: map[time.Duration]int64{}}
}

// run starts calls until the plan is over or ctx is cancelled, and returns when that was, since
// the start of the load. All calls that were due until then were started, or recorded as unsent.
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
	p.unsent[a.Due.Truncate(p.load.plan.Length()/mostMoments)]++
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

// Driver is a Client that needs no goroutine for a call that is under way: what reads the
// answers begins the next calls. It is for clients that cost less than a goroutine does.
type Driver interface {
	Client

	// Start begins calls and returns; each ends with End of its task. It may change the
	// order of the tasks, and keeps none of them. ctx is that of Call, and the same for
	// all calls of a load. Many goroutines call it at a time.
	Start(ctx context.Context, tasks []Task)
}

// Task is a call to make, and who is told how it has ended.
type Task struct {
	Call Call
	End  Ender
}

// Ender is told by a Driver how a call has ended, with the moment of that. It may have
// another call to make at once, on the same connection; behind a failure it has none. It
// waits for nobody, is told of one call at a time, and keeps nothing of the answer.
type Ender interface {
	End(answer *Answer) (next Call, more bool)
}

// mostTasks bounds how long the first call of a batch waits for the last one.
const mostTasks = 64

// paced is a call of an open loop that a Driver makes; it is used again.
type paced struct{ flight }

func (p *paced) End(answer *Answer) (next Call, more bool) {
	load := p.load
	p.end(answer, load.endOf(answer, 0))
	load.spare.Put(p)
	load.calls.Done()
	return Call{}, false
}

// drive hands what is due to the Driver.
func (p *pacer) drive() {
	if len(p.due) == 0 {
		return
	}
	now := p.load.now()
	tasks := p.tasks[:0]
	for _, a := range p.due {
		c, _ := p.load.spare.Get().(*paced)
		if c == nil {
			c = new(paced)
		}
		c.flight = flight{load: p.load, tally: p.load.tallies[a.Number%uint64(len(p.load.tallies))], Arrival: a, begun: now}
		if call, ok := c.begin(); ok {
			p.load.calls.Add(1)
			tasks = append(tasks, Task{call, c})
		}
	}
	p.due, p.tasks = p.due[:0], tasks
	p.load.driver.Start(p.ctx, tasks)
}

const (
	// watchTime is how long before a moment the generator stops to sleep, and looks at the
	// clock: who sleeps on a virtual machine is woken 0.1 to 0.2 ms late, for its cores halt.
	watchTime   = 250 * time.Microsecond
	mostWatched = 1000 // the rate in calls per second up to which it does: a quarter of a core
	// ownStep bounds what one look at the clock takes; in a longer one others have run.
	ownStep = 5 * time.Microsecond
)

// exact waits with an alarm, and with its eyes on the clock at the end.
//
// Concurrency: one goroutine at a time.
type exact struct {
	*alarm.Alarm

	watched time.Duration // CPU that the looks have taken
}

// Sleep returns after d, or at once if d is not above 0. Other goroutines run meanwhile.
func (e *exact) Sleep(d time.Duration) error {
	now := time.Now()
	end := now.Add(d)
	if err := e.Alarm.Sleep(d - watchTime); err != nil {
		return err
	}
	for now = time.Now(); now.Before(end); {
		runtime.Gosched()
		next := time.Now()
		if step := next.Sub(now); step < ownStep {
			e.watched += step
		}
		now = next
	}
	return nil
}

// grid is what intended starts are rounded up to: to wake up for every call would
// cost more than the call does.
const grid = 100 * time.Microsecond

// Arrival is a call of an open loop that is to come.
type Arrival struct {
	Number  uint64        // as in Call
	Due     time.Duration // since the start of the load: a multiple of grid
	Counted bool          // not of the warm-up
}

// schedule draws the arrivals of an open loop one after the other, in order. It is
// a function of the plan alone.
//
// A call is due where the area below the rate reaches the next of a row of numbers:
// 0, 1, 2 and so on, or sums of exponential gaps of mean 1 for a Poisson process. So
// any profile has its exact number of calls, and a ramp is no row of steps.
type schedule struct {
	plan   Plan
	rest   Profile // pieces to come, of the warm-up or of the counted part
	gone   float64 // area of those behind
	begin  time.Duration
	next   float64    // the area at which the next call is due
	random *rand.Rand // nil for constant arrivals
	number uint64
	warm   bool
}

// The streams of random numbers of the two parts of a plan: the counted part has
// the same arrivals whatever the warm-up.
const (
	warmStream uint64 = iota + 1
	countedStream
)

func newSchedule(p Plan) *schedule {
	s := &schedule{plan: p, warm: p.Warmup > 0}
	if s.warm {
		s.enter(p.Rate.after(p.Warmup)[:1], warmStream)
	} else {
		s.enter(p.Rate, countedStream)
	}
	return s
}

func (s *schedule) enter(p Profile, stream uint64) {
	s.rest, s.gone, s.next = p, 0, 0
	if s.plan.Poisson {
		s.random = rand.New(rand.NewPCG(s.plan.Seed, stream))
		s.next = s.random.ExpFloat64()
	}
}

// draw returns the next arrival of this part of the plan.
func (s *schedule) draw() (Arrival, bool) {
	for {
		a, ok := s.drawAny()
		if !ok || a.Number%uint64(s.plan.parts()) == uint64(s.plan.Part) {
			return a, ok
		}
	}
}

// drawAny returns the next arrival of all parts.
func (s *schedule) drawAny() (Arrival, bool) {
	// A hair less than the sum, so that rounding adds no call at the very end.
	const hair = 1e-6
	for {
		for len(s.rest) > 0 {
			piece := s.rest[0]
			if within := s.next - s.gone; within < piece.area()-hair {
				return s.take(piece.reach(max(within, 0))), true
			}
			s.gone += piece.area()
			s.begin += piece.Length
			s.rest = s.rest[1:]
		}
		if !s.warm {
			return Arrival{}, false
		}
		s.warm = false
		s.enter(s.plan.Rate, countedStream)
	}
}

// take makes the arrival at a moment of the present piece, and moves on.
func (s *schedule) take(at time.Duration) Arrival {
	a := Arrival{Number: s.number, Due: (s.begin + at + grid - 1).Truncate(grid), Counted: !s.warm}
	s.number++
	if s.random == nil {
		s.next++
	} else {
		s.next += s.random.ExpFloat64()
	}
	return a
}

// Arrivals yields the calls of an open loop in the order in which they are due: those
// that a Load makes, of its part.
func (p Plan) Arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		if !p.Open() {
			return
		}
		s := newSchedule(p)
		for {
			a, ok := s.draw()
			if !ok || !yield(a) {
				return
			}
		}
	}
}
