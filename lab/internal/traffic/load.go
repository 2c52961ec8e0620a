package traffic

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
)

// mostTallies bounds the memory of the tallies, 1.5 MB each. With four of them a
// hundred thousand calls per second seldom meet at a lock.
const mostTallies = 4

// Load makes the calls of a plan.
//
// Life: New, one Run.
// Concurrency: Live may be called at any time, by anybody.
type Load struct {
	plan   Plan
	client Client
	rest   waiter

	tallies []*tally
	began   atomic.Pointer[time.Time]

	counted []Count        // by the client when it began; Run's own
	made    bool           // the given number of calls is made; Run's own
	calls   sync.WaitGroup // goroutines that call
	under   atomic.Int64   // calls under way
	most    atomic.Int64   // the highest of under that was seen
	taken   atomic.Uint64  // calls that callers have taken, where their number is given
	closing atomic.Bool    // the grace is over: calls that end now are open
}

// waiter waits for short times exactly, in virtual time as in real.
type waiter interface {
	Sleep(d time.Duration) error
}

// New returns a load that has not begun.
func New(plan Plan, client Client) *Load {
	l := &Load{plan: plan, client: client}
	for range min(runtime.GOMAXPROCS(0), mostTallies) {
		l.tallies = append(l.tallies, newTally(plan))
	}
	return l
}

// Run makes the calls, waits for their ends up to the grace, and returns what was
// measured. When ctx is cancelled no more calls start: the calls that were due until
// then have the grace, and the record is marked as cut short.
//
// Errors: of the machine (no timer), and of a second Run. A call that fails is a
// figure, not an error.
func (l *Load) Run(ctx context.Context) (*Record, error) {
	now := time.Now()
	if !l.began.CompareAndSwap(nil, &now) {
		return nil, errors.New("internal error: a load runs once")
	}
	if c, ok := l.client.(Counter); ok {
		l.counted = c.Counts()
	}
	if l.rest == nil {
		timer, err := alarm.New()
		if err != nil {
			return nil, err
		}
		defer timer.Close()
		l.rest = timer
	}
	calls, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var end time.Duration
	var unsent *waiting
	if l.plan.Open() {
		p := newPacer(calls, l)
		var err error
		if end, err = p.run(ctx); err != nil {
			giveUp()
			l.calls.Wait()
			return nil, err
		}
		unsent = p.unsent
	} else {
		end = l.callers(ctx, calls)
	}
	for _, t := range l.tallies {
		t.stopAt(end)
	}
	l.await(giveUp)
	return l.close(end, unsent)
}

// await waits until all calls have ended, up to the grace, and gives up the others.
func (l *Load) await(giveUp context.CancelFunc) {
	ended := make(chan struct{})
	go func() { // ends with the calls: giveUp ends those
		l.calls.Wait()
		close(ended)
	}()
	grace := time.NewTimer(l.plan.Grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
		l.closing.Store(true)
		giveUp()
		<-ended
	}
}

// close makes the record of a load whose calls have ended. end is when calls ceased
// to start.
func (l *Load) close(end time.Duration, unsent *waiting) (*Record, error) {
	if unsent != nil {
		now := l.now()
		for _, g := range unsent.groups {
			l.tallies[0].ages(now-g.due, g.calls)
		}
	}
	r, err := total(l.plan, l.tallies)
	if err != nil {
		return nil, err
	}
	r.Cut = end < l.plan.Length() && !l.made
	r.Counted = max(end-l.plan.Warmup, 0)
	r.MostUnderWay = l.most.Load()
	if d, ok := l.client.(Dialer); ok {
		r.Opened = d.Opened()
	}
	if c, ok := l.client.(Counter); ok {
		r.Counts = addCounts(c.Counts(), l.counted, -1)
	}
	return r, nil
}

// now is the time since the load began.
func (l *Load) now() time.Duration { return time.Since(*l.began.Load()) }

// call makes one call and records it. It reports whether the call was answered well.
func (l *Load) call(ctx context.Context, t *tally, a arrival) bool {
	began := *l.began.Load()
	call := Call{Number: a.number, Due: began.Add(a.due)}
	if l.plan.Timeout > 0 {
		call.Deadline = call.Due.Add(l.plan.Timeout)
	}
	e := ended{arrival: a, begun: time.Since(began)}
	if l.plan.Timeout > 0 && e.begun-a.due >= l.plan.Timeout {
		l.under.Add(-1)
		t.late(a, l.plan.Timeout, e.begun-a.due)
		return false
	}
	e.answer = l.client.Call(ctx, call)
	e.ended = time.Since(began)
	if !e.answer.Ended.IsZero() {
		e.ended = e.answer.Ended.Sub(began)
	}
	l.under.Add(-1)
	e.left = e.answer.Code != 0 && l.closing.Load()
	if !e.answer.First.IsZero() {
		e.first = e.answer.First.Sub(began)
	}
	t.end(&e)
	return e.answer.Code == 0
}

// enter counts a call as under way.
func (l *Load) enter() {
	now := l.under.Add(1)
	for {
		most := l.most.Load()
		if now <= most || l.most.CompareAndSwap(most, now) {
			return
		}
	}
}
