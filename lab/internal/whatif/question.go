package whatif

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
)

const (
	// DefaultCalls is how many calls of each cell are counted: enough for p99.9.
	DefaultCalls = 100_000
	// leastCalls tell a p90.
	leastCalls = 1000
	mostCalls  = 5_000_000
	// mostSimulated bounds the time: about a second for each million, on one core.
	mostSimulated = 500_000_000

	mostWorkers = 1000
	mostSlots   = 1000
	// mostPlaces bounds what a rank of one cell has to look through.
	mostPlaces = 20_000
	mostRate   = 1_000_000
)

// Question is what somebody wants to know.
type Question struct {
	// Rate is the forecast: calls per second, from callers who do not know each other
	// (a Poisson process).
	Rate float64
	// Timeout is the deadline of each call, from when it was due; 0 for none.
	Timeout time.Duration
	// Workers are the numbers of workers to try, rising; nil for as many as may be of
	// use.
	Workers []int
	// Slots are the numbers of slots of each worker to try.
	Slots []int
	// Calibrations are the service times: one for each of Slots, or one for all.
	Calibrations []Calibration
	// Queue is that of Cabrank.
	Queue Queue
	// Thresholds say what is good enough; nil to see all.
	Thresholds goal.Thresholds
	// Calls is how many calls of each cell are counted; 0 means DefaultCalls.
	Calls int
	// Seed draws the calls.
	Seed uint64
}

// complete checks a question and puts in what was left out.
//
// Errors: one line.
func (q Question) complete() (Question, error) {
	if q.Calls == 0 {
		q.Calls = DefaultCalls
	}
	switch {
	case !(q.Rate > 0) || q.Rate > mostRate:
		return q, fmt.Errorf("a rate of %v calls per second: want one above 0, at most %d", q.Rate, mostRate)
	case q.Timeout < 0:
		return q, fmt.Errorf("a timeout of %v: want one above 0, or 0 for none", q.Timeout)
	case q.Calls < leastCalls || q.Calls > mostCalls:
		return q, fmt.Errorf("%d calls of each cell: want %d to %d", q.Calls, leastCalls, mostCalls)
	case len(q.Slots) == 0:
		return q, errors.New("internal error: no number of slots")
	}
	slices.Sort(q.Slots)
	q.Slots = slices.Compact(q.Slots)
	for _, slots := range q.Slots {
		if err := q.checkSlots(slots); err != nil {
			return q, err
		}
	}
	return q, q.checkSize()
}

func (q Question) checkSlots(slots int) error {
	if slots < 1 || slots > mostSlots {
		return fmt.Errorf("%d slots: want 1 to %d", slots, mostSlots)
	}
	c, err := ForSlots(q.Calibrations, slots)
	switch {
	case err != nil:
		return err
	case c.Service() == nil:
		return fmt.Errorf("%s: there are no service times", c.Source)
	case q.Timeout > 0 && q.Timeout <= c.Echo:
		return fmt.Errorf("a timeout of %v is over before the answer of a service that does nothing (%v)", q.Timeout, c.Echo)
	}
	return nil
}

// checkSize bounds the work.
func (q Question) checkSize() error {
	rows := 0
	for _, slots := range q.Slots {
		workers := q.Workers
		if workers == nil {
			workers = q.useful(slots)
		}
		rows += len(workers)
		if least, most := slices.Min(workers), slices.Max(workers); least < 1 || most > mostWorkers || most*slots > mostPlaces {
			return fmt.Errorf("%d workers of %d slots: want 1 to %d workers, and at most %d slots in all", most, slots, mostWorkers, mostPlaces)
		}
	}
	if n := int64(rows*len(Policies())) * int64(q.Calls); n > mostSimulated {
		return fmt.Errorf("%d numbers of workers with %d calls for each policy: at most %d calls in all are simulated; ask for fewer", rows, q.Calls, mostSimulated)
	}
	return nil
}

// mostSteps is about how many numbers of workers are tried if nobody says which. What
// is between them is tried where it decides.
const mostSteps = 12

// useful are numbers of workers from fewer than the load keeps busy to more than most
// goals need: twice as many, and a few for chance. If they are many, the gaps between
// them are of about the same ratio.
func (q Question) useful(slots int) (all []int) {
	c, err := ForSlots(q.Calibrations, slots)
	if err != nil {
		return nil // complete has looked
	}
	busy := q.Rate * c.Service().Mean().Seconds()
	first := max(1, int(0.8*busy/float64(slots)))
	last := int(math.Ceil((2*busy+4*math.Sqrt(busy))/float64(slots))) + 2
	ratio := math.Pow(float64(last)/float64(first), 1.0/mostSteps)
	for next := first; next < last; {
		all = append(all, next)
		next += max(1, int(math.Round(float64(next)*(ratio-1))))
	}
	return append(all, last)
}

// ParseNumbers reads numbers of workers or slots, and returns them rising, each once.
//
// Shape: 4, or 1..16, or several with commas between them: 1,2,4..8.
// Errors: one line.
func ParseNumbers(text string) (all []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "..")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 1 || to < from || to > mostPlaces {
			return nil, fmt.Errorf("%.40q: want numbers from 1 on, such as 4, 1..16 or 1,2,4..8", text)
		}
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// list writes numbers as ParseNumbers reads them.
func list(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			parts = append(parts, fmt.Sprintf("%d..%d", numbers[i], numbers[j]))
		case j == i+1:
			parts = append(parts, strconv.Itoa(numbers[i]), strconv.Itoa(numbers[j]))
		default:
			parts = append(parts, strconv.Itoa(numbers[i]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
