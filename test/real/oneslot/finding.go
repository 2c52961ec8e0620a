package oneslot

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/ranksim"
)

// Finding is what a trial has shown.
type Finding struct {
	Calls    int
	InTime   int            // answered with OK, before their deadline if there is one
	Statuses map[string]int // calls by how they ended: the code and, unless it is OK, the message

	// P99 is that of the calls that were answered with OK, since they were due, and
	// IdealP99 that of all calls in one queue without any cost (M/G/k).
	P99, IdealP99 time.Duration

	// What the workers have seen.
	Overlaps int           // calls that arrived while the worker had another one, and ran
	Late     int           // calls that began after their deadline
	Latest   time.Duration // the most by which one did
	Twice    int           // calls that ran more than once
	Unseen   int           // calls answered with OK that no worker has run
}

// Judge puts together what callers and workers tell about a trial.
func Judge(t Trial, outcomes []Outcome, workers int, records []Record) Finding {
	f := Finding{Calls: len(outcomes), Statuses: map[string]int{}}
	runs := make([]int, len(outcomes))
	for _, r := range records {
		if r.Call < 0 {
			continue // of no trial
		}
		runs[r.Call]++
		if r.Overlap {
			f.Overlaps++
		}
		if late := r.Began - outcomes[r.Call].Due - t.Timeout; t.Timeout > 0 && late > 0 {
			f.Late, f.Latest = f.Late+1, max(f.Latest, late)
		}
	}
	var took []time.Duration
	for i, o := range outcomes {
		if runs[i] > 1 {
			f.Twice++
		}
		if o.Code != codes.OK {
			f.Statuses[o.Code.String()+": "+o.Message]++
			continue
		}
		f.Statuses["OK"]++
		took = append(took, o.Took())
		if t.Timeout == 0 || o.Took() <= t.Timeout {
			f.InTime++
		}
		if runs[i] == 0 {
			f.Unseen++
		}
	}
	slices.Sort(took)
	f.P99, f.IdealP99 = ranksim.Quantile(took, 0.99), ranksim.Quantile(ideal(t.Calls, workers), 0.99)
	return f
}

// ideal is how long the calls take in one queue without any cost, in order of time.
func ideal(calls []Call, workers int) []time.Duration {
	var drawn []ranksim.Call
	for _, c := range calls {
		drawn = append(drawn, ranksim.Call{Arrives: c.At, Service: c.Service})
	}
	return ranksim.FirstCome(drawn, workers, ranksim.Handlers{}).Sojourns(ranksim.Everyone)
}

// InTimeShare is the share of all calls that were answered in time.
func (f Finding) InTimeShare() float64 { return ranksim.Share(f.InTime, f.Calls) }

// String renders a finding for people.
func (f Finding) String() string {
	return fmt.Sprintf("%d calls, %.1f %% in time: %v; p99 %v, ideal %v; at the workers: %d overlaps, %d began late (by %v at most), %d ran twice",
		f.Calls, 100*f.InTimeShare(), f.Statuses, f.P99, f.IdealP99, f.Overlaps, f.Late, f.Latest, f.Twice)
}
