// Package traffic makes calls by a plan, with any Client, and records what became of each.
//
// Options are what people type; Options.Plan reads them into a Plan. New joins a plan
// and a client to a Load; Load.Run makes the calls and returns a Record, and Load.Live
// tells how it goes meanwhile. Records merge without loss and are written as JSON.
//
//  1. In an open loop calls start at moments that were drawn before, whoever has
//     answered. Latency and deadline count from that intended start.
//  2. In a closed loop a number of callers make one call after the other. Its records
//     say so: they are not to be set beside those of an open loop.
//  3. Every call that was due is in the record once: answered, failed, unsent or open.
//  4. Nothing grows without bound: at most Plan.Most calls are under way, and what
//     is kept does not grow with their number.
//
// It knows no protocol and no socket: package caller has a client that uses grpc-go.
package traffic

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/alarm"
	"github.com/cabrank/cabrank/lab/internal/latency"
)

// mostTallies bounds the memory of the tallies, 2 MB each. With four of them a
// hundred thousand calls per second seldom meet at a lock.
const mostTallies = 4

// Load makes the calls of a plan.
//
// Life: New, one Run.
// Concurrency: Live may be called at any time, by anybody.
type Load struct {
	plan   Plan
	client Client
	driver Driver    // the client, if it is one
	spare  sync.Pool // of *paced, for the Driver
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
	l.driver, _ = client.(Driver)
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
		if l.driver == nil && l.plan.Rate.Most() <= mostWatched {
			l.rest = &exact{Alarm: timer}
		}
	}
	calls, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var end time.Duration
	var unsent map[time.Duration]int64
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
	select {
	case <-ended:
	case <-time.After(l.plan.Grace):
		l.closing.Store(true)
		giveUp()
		<-ended
	}
}

// close makes the record of a load whose calls have ended. end is when calls ceased to start.
func (l *Load) close(end time.Duration, unsent map[time.Duration]int64) (*Record, error) {
	now := l.now()
	for due, calls := range unsent {
		l.tallies[0].ages(now-due, calls)
	}
	r, err := total(l.plan, l.tallies)
	if err != nil {
		return nil, err
	}
	r.Cut = end < l.plan.Length() && !l.made
	r.Counted = max(end-l.plan.Warmup, 0)
	r.MostUnderWay = l.most.Load()
	if e, is := l.rest.(*exact); is {
		r.Watched = e.watched
	}
	if d, ok := l.client.(Dialer); ok {
		r.Opened = d.Opened()
	}
	if c, ok := l.client.(Counter); ok {
		r.Counts = addCounts(c.Counts(), l.counted, -1)
	}
	return r, nil
}

func (l *Load) now() time.Duration { return time.Since(*l.began.Load()) }

type flight struct {
	Arrival

	load  *Load
	tally *tally
	begun time.Duration // since the load began
}

// begin returns the call, or false if its deadline has passed, which it records.
func (f *flight) begin() (Call, bool) {
	call := Call{Number: f.Number, Due: f.load.began.Load().Add(f.Due)}
	if timeout := f.load.plan.Timeout; timeout > 0 {
		if f.begun-f.Due >= timeout {
			f.load.under.Add(-1)
			f.tally.late(f.Arrival, timeout, f.begun-f.Due)
			return call, false
		}
		call.Deadline = call.Due.Add(timeout)
	}
	return call, true
}

// end records how the call has ended, and when. It reports whether it was answered well.
func (f *flight) end(answer *Answer, at time.Duration) bool {
	f.load.under.Add(-1)
	e := ended{Arrival: f.Arrival, begun: f.begun, ended: at, answer: answer}
	e.left = answer.Code != 0 && f.load.closing.Load()
	if !answer.First.IsZero() {
		e.first = answer.First.Sub(*f.load.began.Load())
	}
	f.tally.end(&e)
	return answer.Code == 0
}

// endOf is when a call has ended that has returned now.
func (l *Load) endOf(answer *Answer, now time.Duration) time.Duration {
	if answer.Ended.IsZero() {
		return now
	}
	return answer.Ended.Sub(*l.began.Load())
}

func (l *Load) enter() {
	now := l.under.Add(1)
	for {
		most := l.most.Load()
		if now <= most || l.most.CompareAndSwap(most, now) {
			return
		}
	}
}

// Live is how a load goes.
type Live struct {
	Elapsed, Length time.Duration // since it began; for which calls start
	Warmup          bool          // until the counted part begins
	// Answered, Failed and Unsent are calls of the counted part so far; UnderWay were sent
	// and have not ended.
	Answered, Failed, Unsent, UnderWay int64
	// PerSecond is how many answers came in each second of the last whole interval of the
	// timeline, P50 and P99 their latencies; 0 before there is one.
	PerSecond float64
	P50, P99  time.Duration
}

// Live returns how the load goes. It is meant to be called about once a second; it
// takes some microseconds of each tally.
func (l *Load) Live() Live {
	live := Live{Length: l.plan.Length(), Warmup: l.plan.Warmup > 0, UnderWay: l.under.Load()}
	if l.began.Load() == nil {
		return live
	}
	live.Elapsed = l.now()
	counted := live.Elapsed - l.plan.Warmup
	live.Warmup = counted < 0
	last := latency.New()
	for _, t := range l.tallies {
		t.add(&live, last, counted)
	}
	live.PerSecond = float64(last.Count()) / l.tallies[0].record.Timeline.Step.Seconds()
	live.P50, live.P99 = last.At(0.5), last.At(0.99)
	return live
}

// Follow tells once a second how a load goes, until the function that it returns is called.
func Follow(live func() Live, tell func(Live)) (end func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() { // ends by end
		defer close(over)
		for {
			select {
			case <-time.After(time.Second):
				tell(live())
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

// add adds what one tally knows, and the answers that came to it in the last whole interval.
func (t *tally) add(live *Live, last *latency.Histogram, counted time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record
	live.Answered += r.Calls.Answered.Count()
	live.Failed += r.Calls.Failed.Count()
	live.Unsent += r.Unsent.Full + r.Unsent.Late
	if i := int(counted/r.Timeline.Step) - 1; i >= 0 && t.came[i%len(t.came)].interval == i {
		last.Merge(t.came[i%len(t.came)].took)
	}
}

// Client makes calls; each of the lab's clients is one.
type Client interface {
	// Call makes one call and returns when it has ended: with its answer, or at its deadline with
	// the code 4, or soon after ctx is cancelled. ctx has no deadline: whoever can do without a
	// timer for each call does. Many calls are under way at a time.
	Call(ctx context.Context, call Call) Answer
}

// Dialer is a Client that counts its connections.
type Dialer interface {
	// Opened returns how many were opened so far. It may be called at any time.
	Opened() int64
}

// Counter is a Client that counts what else it sees, such as messages by their kind.
type Counter interface {
	// Counts returns what was counted so far: the same names in the same order each
	// time. It may be called at any time.
	Counts() []Count
}

// Count is how many of something there were.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Call is one call to make.
type Call struct {
	// Number tells calls of a plan apart, over all of its parts; 0 and up. Two
	// runs of an open plan have the same numbers at the same moments.
	Number uint64
	// Due is when the call was to start. It lies a little in the past, or more
	// when the generator is late.
	Due      time.Time
	Deadline time.Time // when the caller gives up; zero means never
}

// Bound returns a context of the call, which ends at its deadline.
func (c Call) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, c.Deadline)
}

// Answer is how a call ended.
type Answer struct {
	Code    uint32 // the status of gRPC, 0 for OK
	Message string // the text of a failure
	Worker  string // who has answered; empty if that is not known
	// Workers counts answers by worker where one call stands for several; Worker is empty then.
	Workers Shares
	// Sent and Received count the messages of the call and their bytes, as they
	// are before compression and without prefix.
	Sent, Received Volume
	// First is when the first message of a stream of answers came; zero if none
	// did, and for calls with one answer.
	First time.Time
	// Ended is when the answer was there, for a client that had more to do behind
	// it; zero means when Call returned.
	Ended time.Time
}

// Volume is a number of messages.
type Volume struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

func (v *Volume) add(other Volume) {
	v.Messages += other.Messages
	v.Bytes += other.Bytes
}
