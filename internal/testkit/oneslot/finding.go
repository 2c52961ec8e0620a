package oneslot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Finding is what a trial has shown.
type Finding struct {
	Calls    int            `json:"calls"`
	InTime   int            `json:"in_time"`  // answered with OK, before their deadline if there is one
	Statuses map[string]int `json:"statuses"` // calls by how they ended: the code and, unless it is OK, the message

	// Latencies of the calls that were answered with OK, since they were due,
	// and of all calls in the ideal queue.
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	IdealP50 time.Duration `json:"ideal_p50_ns"`
	IdealP99 time.Duration `json:"ideal_p99_ns"`

	// What the workers have seen.
	Overlaps int           `json:"overlaps"`    // calls that arrived while the worker had another one
	Refused  int           `json:"refused"`     // of those, sent back
	Skipped  int           `json:"skipped"`     // of those, never begun
	Late     int           `json:"late_starts"` // calls that began after their deadline
	Latest   time.Duration `json:"latest_ns"`   // the most by which one did
	Twice    int           `json:"ran_twice"`   // calls that ran more than once
	Unseen   int           `json:"unseen"`      // calls answered with OK that no worker has run

	Busy      float64 `json:"busy_share"`    // of all workers' time, until the last call was due
	UsefulRun float64 `json:"useful_share"`  // of that time, spent on calls that were answered in time
	PacedLate float64 `json:"paced_late_us"` // the most by which a call was made too late
}

// Judge puts together what callers and workers tell about a trial.
func Judge(t Trial, outcomes []Outcome, workers int, records []Record) Finding {
	f := Finding{Calls: len(outcomes), Statuses: map[string]int{}}
	f.callers(t, outcomes)
	ideal := Ideal(t.Calls, workers)
	f.IdealP50, f.IdealP99 = Quantile(ideal, 0.5), Quantile(ideal, 0.99)
	f.workers(t, outcomes, workers, records)
	return f
}

// Good says whether a call was answered with OK before its deadline.
func (t Trial) Good(o Outcome) bool {
	return o.Code == codes.OK && (t.Timeout == 0 || o.Took() <= t.Timeout)
}

func (f *Finding) callers(t Trial, outcomes []Outcome) {
	var took []time.Duration
	for _, o := range outcomes {
		how := o.Code.String()
		if o.Code == codes.OK {
			took = append(took, o.Took())
		} else {
			how += ": " + o.Message
		}
		f.Statuses[how]++
		if t.Good(o) {
			f.InTime++
		}
		f.PacedLate = max(f.PacedLate, float64(o.Sent-o.Due)/float64(time.Microsecond))
	}
	f.P50, f.P99 = Quantile(took, 0.5), Quantile(took, 0.99)
}

func (f *Finding) workers(t Trial, outcomes []Outcome, workers int, records []Record) {
	runs := make([]int, len(outcomes))
	var busy, useful time.Duration
	for _, r := range records {
		if r.Call < 0 || r.Call >= len(outcomes) {
			continue // of no trial: one that opened a connection
		}
		f.count(r)
		if r.Fate != Done {
			continue
		}
		o := outcomes[r.Call]
		runs[r.Call]++
		busy += r.Ended - r.Began
		if t.Good(o) {
			useful += r.Ended - r.Began
		}
		if late := r.Began - o.Due - t.Timeout; t.Timeout > 0 && late > 0 {
			f.Late++
			f.Latest = max(f.Latest, late)
		}
	}
	for i, o := range outcomes {
		if runs[i] > 1 {
			f.Twice++
		}
		if runs[i] == 0 && o.Code == codes.OK {
			f.Unseen++
		}
	}
	if n := len(outcomes); n > 0 && busy > 0 {
		f.Busy = float64(busy) / float64(t.Calls[n-1].At) / float64(workers)
		f.UsefulRun = float64(useful) / float64(busy)
	}
}

func (f *Finding) count(r Record) {
	if r.Overlap {
		f.Overlaps++
	}
	switch r.Fate {
	case Refused:
		f.Refused++
	case Skipped:
		f.Skipped++
	case Done:
	}
}

// OverIdeal is the p99 as a multiple of that of the ideal queue.
func (f Finding) OverIdeal() float64 { return float64(f.P99) / float64(max(f.IdealP99, 1)) }

// InTimeShare is the share of all calls that were answered in time.
func (f Finding) InTimeShare() float64 { return float64(f.InTime) / float64(max(f.Calls, 1)) }

// String renders a finding for people.
func (f Finding) String() string {
	var ends []string
	for how, n := range f.Statuses {
		ends = append(ends, fmt.Sprintf("%d %s", n, how))
	}
	slices.Sort(ends)
	return fmt.Sprintf("%d calls, %.1f %% in time; p50 %v, ideal %v; p99 %v, ideal %v (%.3fx)\n"+
		"at the workers: %d overlaps (%d refused, %d skipped), %d began late (by %v at most), %d ran twice; busy %.0f %%, of it useful %.0f %%; paced late by %.0f us at most\n%s",
		f.Calls, 100*f.InTimeShare(), f.P50, f.IdealP50, f.P99, f.IdealP99, f.OverIdeal(),
		f.Overlaps, f.Refused, f.Skipped, f.Late, f.Latest, f.Twice, 100*f.Busy, 100*f.UsefulRun, f.PacedLate, strings.Join(ends, "\n"))
}

// Quantile returns the smallest duration that the share q (0 to 1) of all do
// not exceed; 0 of none.
func Quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(q * float64(len(sorted)))
	if float64(rank) < q*float64(len(sorted)) {
		rank++
	}
	return sorted[max(rank-1, 0)]
}
