package traffic

import (
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// tally records the calls of some of the goroutines. There are a few of them, so that
// two goroutines seldom meet at the lock, and who reads live figures holds up the
// calls of one for some microseconds.
type tally struct {
	from time.Duration // the start of the counted part; never changed

	mu       sync.Mutex
	until    time.Duration // its end: as planned, or earlier when it was cut short
	record   *Record
	failures failures
	// came are the latencies of the answers that came in the interval under way and in
	// the one before, for live figures.
	came [2]recent
}

// recent are the latencies of the answers that came in an interval.
type recent struct {
	interval int
	took     *latency.Histogram
}

func newTally(p Plan) *tally {
	t := &tally{from: p.Warmup, until: p.Length(), record: newRecord(p), failures: failures{}}
	for i := range t.came {
		t.came[i].took = latency.New()
	}
	return t
}

// stopAt says when calls have ceased to start.
func (t *tally) stopAt(end time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = end
}

// ended is what one call has come to. Times are since the start of the load.
type ended struct {
	Arrival

	begun, ended time.Duration
	answer       *Answer
	first        time.Duration // of the first message, 0 if there is none
	left         bool          // open: it was given up when the grace was over
}

func (t *tally) end(e *ended) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record
	answered := e.answer.Code == 0 && !e.left
	if answered && e.ended >= t.from && e.ended < t.until {
		r.Came++
		r.Timeline.at(e.ended-t.from).Came++
		i := int((e.ended - t.from) / r.Timeline.Step)
		slot := &t.came[i%len(t.came)]
		if slot.interval < i {
			slot.interval = i
			slot.took.Reset()
		}
		if slot.interval == i {
			slot.took.Record(e.ended - e.Due)
		}
	}
	if !e.Counted {
		t.warm(answered)
		return
	}
	interval := t.due(e.Due)
	took := e.ended - e.Due
	switch {
	case e.left:
		r.Open.Record(took)
		interval.Open++
	case answered:
		r.Calls.Answer(took)
		interval.Answered++
	default:
		t.failures.add(r.Calls.Fail(e.answer.Code, took), e.answer.Message, 1)
		interval.Failed++
	}
	t.details(e, interval)
}

// details records what is not the end of a call.
func (t *tally) details(e *ended, interval *Interval) {
	r := t.record
	if r.Loop == OpenLoop {
		r.Lag.Record(e.begun - e.Due)
	}
	r.Sent.add(e.answer.Sent)
	r.Received.add(e.answer.Received)
	if e.answer.Worker != "" {
		r.Workers.add(e.answer.Worker, 1, mostWorkers)
		interval.worked(e.answer.Worker, 1)
	}
	for worker, calls := range e.answer.Workers {
		r.Workers.add(worker, calls, mostWorkers)
		interval.worked(worker, calls)
	}
	if e.first > 0 {
		r.First.Record(e.first - e.Due)
	}
}

func (t *tally) warm(answered bool) {
	t.record.Warmup.Calls++
	if !answered {
		t.record.Warmup.Failed++
	}
}

// due counts a call of the counted part and returns its interval.
func (t *tally) due(at time.Duration) *Interval {
	t.record.Due++
	interval := t.record.Timeline.at(at - t.from)
	interval.Due++
	return interval
}

// late records a call whose deadline passed before it could be sent: its caller has
// waited for the timeout, however late it was by then.
func (t *tally) late(a Arrival, timeout, lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unsent(a) {
		t.record.Unsent.Late++
		t.record.Unsent.Ages.Record(timeout)
		t.record.Lag.Record(lag)
	}
}

// full records a call that found the most calls under way, but not its age; and
// reports whether the call counts.
func (t *tally) full(a Arrival) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.unsent(a) {
		return false
	}
	t.record.Unsent.Full++
	return true
}

func (t *tally) unsent(a Arrival) bool {
	if !a.Counted {
		t.warm(false)
		return false
	}
	t.due(a.Due).Unsent++
	return true
}

// ages records how old calls are that were not sent.
func (t *tally) ages(age time.Duration, calls int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range calls {
		t.record.Unsent.Ages.Record(age)
	}
}

func total(p Plan, tallies []*tally) (*Record, error) {
	r := newRecord(p)
	for _, t := range tallies {
		t.mu.Lock()
		t.record.Failures = t.failures.list()
		err := r.Merge(t.record)
		t.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Replay makes the record of calls that nobody has made, such as those of a simulation:
// it is like that of a Load that was sent without lag.
//
// Concurrency: none.
type Replay struct {
	plan  Plan
	tally *tally
}

// NewReplay returns the record of no calls.
func NewReplay(p Plan) *Replay { return &Replay{plan: p, tally: newTally(p)} }

// End records that a call has ended, so long after it was due.
func (r *Replay) End(a Arrival, took time.Duration, answer Answer) {
	r.tally.end(&ended{Arrival: a, begun: a.Due, ended: a.Due + took, answer: &answer})
}

// Record returns what has become of the calls.
func (r *Replay) Record() (*Record, error) {
	record, err := total(r.plan, []*tally{r.tally})
	if err == nil {
		record.Counted = r.plan.Duration()
	}
	return record, err
}
