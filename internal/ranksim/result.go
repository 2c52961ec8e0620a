package ranksim

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Ending is how a call ended for its caller.
type Ending uint8

const (
	// Answered means that the worker's answer came while the caller waited.
	Answered Ending = iota + 1
	// Expired means that the deadline passed first, in the queue or at a worker.
	Expired
	// Left means that the caller cancelled first.
	Left
	// Refused means that the rank gave the call no slot; Record.Reason says why.
	Refused
	// WaitedTooLong means that System.QueueTimeout passed in the queue.
	WaitedTooLong
	// Exhausted means that workers refused the call too often (R1).
	Exhausted
	// Broken means that the worker was killed.
	Broken
)

// String returns the ending in lower case, for tables and tests.
func (e Ending) String() string {
	switch e {
	case Answered:
		return "answered"
	case Expired:
		return "expired"
	case Left:
		return "left"
	case Refused:
		return "refused"
	case WaitedTooLong:
		return "waited too long"
	case Exhausted:
		return "exhausted"
	case Broken:
		return "broken"
	}
	return "ending " + strconv.Itoa(int(e))
}

// Record is the history of one call.
type Record struct {
	// Wait is the time from the arrival until the handler began that served
	// the call; of a call without one, until its end.
	Wait time.Duration
	// Sojourn is the time from the arrival until the caller knew the end.
	Sojourn time.Duration
	// Held is the time that handlers of this call kept threads busy, also after
	// the caller has gone.
	Held time.Duration
	// Starts is the number of handlers that began.
	Starts uint8
	// Hedged means that a second attempt began.
	Hedged bool
	// Ending is how it ended.
	Ending Ending
	// Reason is the rank's, if Ending is Refused.
	Reason rank.Reason
}

// Result is the result of a simulation.
type Result struct {
	// Calls are the calls of the simulation, and Records their histories: both have the
	// same indexes.
	Calls   []Call
	Records []Record
	// Refusals counts answers of workers without a free thread (R1).
	Refusals int
	// HedgeTime is what the handlers of second attempts took.
	HedgeTime time.Duration
	// Longest is the largest number of calls that waited at once.
	Longest int
}

// newResult returns an empty result for calls.
func newResult(calls []Call) *Result {
	return &Result{Calls: slices.Clip(calls), Records: make([]Record, len(calls))}
}

// Pick says which calls a measure is about.
type Pick func(c *Call, r *Record) bool

// Everyone picks all calls.
func Everyone(*Call, *Record) bool { return true }

// OfCaller picks the calls of one caller.
func OfCaller(caller int) Pick {
	return func(c *Call, _ *Record) bool { return c.Caller == caller }
}

// Waits returns the sorted waits of the picked calls.
func (r *Result) Waits(pick Pick) []time.Duration {
	return r.sorted(pick, func(rec *Record) time.Duration { return rec.Wait })
}

// Sojourns returns the sorted times in the system of the picked calls. A call
// that was not answered never ends for this measure, so that giving up early
// is no gain: it counts as the longest time there is.
func (r *Result) Sojourns(pick Pick) []time.Duration {
	return r.sorted(pick, func(rec *Record) time.Duration {
		if rec.Ending != Answered {
			return math.MaxInt64
		}
		return rec.Sojourn
	})
}

func (r *Result) sorted(pick Pick, of func(*Record) time.Duration) []time.Duration {
	var all []time.Duration
	for i := range r.Records {
		if pick(&r.Calls[i], &r.Records[i]) {
			all = append(all, of(&r.Records[i]))
		}
	}
	slices.Sort(all)
	return all
}

// Answered returns how many of the picked calls were answered, and how many
// there were.
func (r *Result) Answered(pick Pick) (answered, all int) {
	for i := range r.Records {
		if !pick(&r.Calls[i], &r.Records[i]) {
			continue
		}
		all++
		if r.Records[i].Ending == Answered {
			answered++
		}
	}
	return answered, all
}

// Held returns the time of threads that the picked calls took: that of calls
// which were answered, and all of it.
func (r *Result) Held(pick Pick) (answered, all time.Duration) {
	for i := range r.Records {
		if !pick(&r.Calls[i], &r.Records[i]) {
			continue
		}
		all += r.Records[i].Held
		if r.Records[i].Ending == Answered {
			answered += r.Records[i].Held
		}
	}
	return answered, all
}

// Quantile returns the exact q-quantile of sorted values: the smallest that at
// least the share q of them does not exceed. Without values it is 0.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Share returns part/all as a number; of nothing it is 0.
func Share[N int | time.Duration](part, all N) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
