package whatif

import (
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	// partCalls is how many calls of a part are counted at most, and leastParts how
	// many parts there are, each with an empty queue at its beginning.
	partCalls  = 25_000
	leastParts = 4
	// warmShare of a part, and at least the time of warmRuns long calls, comes before
	// what is counted: the queue fills, and the rank learns how long calls run.
	warmShare = 0.1
	warmRuns  = 3
)

// gRPC's codes of calls that got no answer.
const (
	codeLate = 4 // DEADLINE_EXCEEDED
	codeShed = 8 // RESOURCE_EXHAUSTED
)

// simulate fills a cell.
func (q Question) simulate(cell *Cell) {
	c, err := ForSlots(q.Calibrations, cell.Slots)
	if err != nil {
		return // complete has looked
	}
	service := c.Service()
	cell.Load = q.Rate * service.Mean().Seconds() / float64(cell.Workers*cell.Slots)
	if cell.Load >= 1 && q.Timeout == 0 {
		cell.Overload = true
		return
	}
	t := newCount(c.Echo)
	cell.Parts = max(leastParts, (q.Calls+partCalls-1)/partCalls)
	for n := range cell.Parts {
		part := newCount(c.Echo)
		q.simulatePart(cell, service, n, part)
		if len(q.Thresholds) > 0 && q.Thresholds.Judge(part.record(), 0).Verdict == goal.Held {
			cell.PartsHeld++
		}
		t.merge(part)
	}
	t.into(cell)
	if len(q.Thresholds) > 0 {
		j := q.Thresholds.Judge(t.record(), 0)
		cell.Judgement = &j
	}
}

// simulatePart counts the calls of one part. Its service times are what another measurement
// might have come to, the same for all cells: so the noise of the measurement is
// in what differs from part to part.
func (q Question) simulatePart(cell *Cell, service *Times, n int, part *count) {
	seed := q.Seed*1_000_003 + uint64(n)
	service = service.Again(seed)
	part.span = time.Duration(float64(q.Calls) / float64(cell.Parts) / q.Rate * float64(time.Second))
	warm := max(time.Duration(warmShare*float64(part.span)), min(warmRuns*service.At(0.99), part.span))
	load := ranksim.Workload{
		Seed: seed, Until: warm + part.span,
		Callers: []ranksim.Caller{{Rate: q.Rate, Service: service}},
	}
	if q.Timeout > 0 {
		load.Callers[0].Timeout = q.Timeout - part.echo
	}
	part.add(ranksim.Run(cell.Policy.system(cell.Workers, cell.Slots, q.Queue, seed), load.Draw()), warm)
	part.places = time.Duration(cell.Slots*cell.Workers) * part.span
}

// count is what became of the calls of a part, or of a cell.
type count struct {
	echo    time.Duration
	calls   *latency.Calls
	shed    int64
	held    time.Duration // by handlers
	places  time.Duration // slots times time
	span    time.Duration // in which calls came
	least99 time.Duration
	most99  time.Duration
}

func newCount(echo time.Duration) *count { return &count{echo: echo, calls: latency.NewCalls()} }

// add counts the calls of a part that come after its warm-up.
func (t *count) add(r *ranksim.Result, warm time.Duration) {
	for i := range r.Records {
		if r.Calls[i].Arrives < warm {
			continue
		}
		rec := &r.Records[i]
		took := rec.Sojourn + t.echo
		t.held += rec.Held
		switch code := codeOf(rec.Ending); code {
		case 0:
			t.calls.Answer(took)
		case codeShed:
			t.shed++
			t.calls.Fail(code, took)
		default:
			t.calls.Fail(code, took)
		}
	}
}

// merge adds a part.
func (t *count) merge(part *count) {
	if answered := part.calls.Answered; answered.Count() > 0 {
		p99 := answered.At(0.99)
		if t.calls.Answered.Count() == 0 || p99 < t.least99 {
			t.least99 = p99
		}
		t.most99 = max(t.most99, p99)
	}
	t.calls.Merge(part.calls)
	t.shed += part.shed
	t.held += part.held
	t.places += part.places
	t.span += part.span
}

// into writes the figures.
func (t *count) into(cell *Cell) {
	cell.Due = t.calls.Count()
	cell.Latencies = t.calls.Answered.Summary()
	cell.Least99, cell.Most99 = t.least99, t.most99
	cell.Busy = ranksim.Share(t.held, t.places)
	failed := t.calls.Failed.Count()
	cell.Failed = share(failed, cell.Due)
	cell.Shed, cell.Late = share(t.shed, cell.Due), share(failed-t.shed, cell.Due)
}

func share(part, all int64) float64 { return ranksim.Share(int(part), int(all)) }

// record is the same as one that a load would have measured, for thresholds.
func (t *count) record() *traffic.Record {
	return &traffic.Record{
		Loop: traffic.OpenLoop, Due: t.calls.Count(), Calls: t.calls,
		Counted: t.span, Came: t.calls.Answered.Count(),
		Unsent: traffic.Unsent{Ages: latency.New()}, Open: latency.New(), First: latency.New(), Lag: latency.New(),
	}
}
