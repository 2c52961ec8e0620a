package traffic

import (
	"fmt"
	"time"
)

// mostIntervals bounds a timeline: ten minutes by second, longer plans in longer intervals.
const mostIntervals = 600

// Timeline tells what became of the calls by the moment at which they were due. The
// calls of a pause stand in it where the pause was, not where it ended.
type Timeline struct {
	// Step is the length of an interval: a second, or more whole seconds where
	// there would be more than 600 intervals.
	Step time.Duration `json:"step_ns"`
	// Intervals begin with the counted part.
	Intervals []Interval `json:"intervals"`
}

// Interval is a stretch of a timeline.
type Interval struct {
	// Due is how many calls were due in it: the sum of the four below.
	Due      int64 `json:"due"`
	Answered int64 `json:"answered"`
	Failed   int64 `json:"failed"`
	Unsent   int64 `json:"unsent"`
	Open     int64 `json:"open"`
	// Came is how many answers came in it, whenever their calls were due, those
	// of the warm-up, too: the throughput.
	Came int64 `json:"came"`
	// Workers is who has answered the calls that were due in it, well or not: at
	// most 100 by name.
	Workers Shares `json:"workers,omitempty"`
}

func newTimeline(counted time.Duration) Timeline {
	step := time.Second
	if counted > mostIntervals*time.Second {
		step = ((counted+mostIntervals-1)/mostIntervals + time.Second - 1).Truncate(time.Second)
	}
	return Timeline{Step: step, Intervals: make([]Interval, (counted+step-1)/step)}
}

// at returns the interval of a moment since the start of the counted part; the
// grid may bring a call to its very end, which belongs to the last interval.
func (t *Timeline) at(since time.Duration) *Interval {
	return &t.Intervals[min(max(int(since/t.Step), 0), len(t.Intervals)-1)]
}

func (t *Timeline) merge(other *Timeline) error {
	if t.Step != other.Step || len(t.Intervals) != len(other.Intervals) {
		return fmt.Errorf("timelines of %d intervals of %v and %d of %v: only parts of one plan merge", len(t.Intervals), t.Step, len(other.Intervals), other.Step)
	}
	for i := range t.Intervals {
		t.Intervals[i].merge(&other.Intervals[i])
	}
	return nil
}

func (i *Interval) merge(other *Interval) {
	i.Due += other.Due
	i.Answered += other.Answered
	i.Failed += other.Failed
	i.Unsent += other.Unsent
	i.Open += other.Open
	i.Came += other.Came
	for worker, calls := range other.Workers {
		i.worked(worker, calls)
	}
}

func (i *Interval) worked(worker string, calls int64) {
	if i.Workers == nil {
		i.Workers = Shares{}
	}
	i.Workers.add(worker, calls, mostWorkersByTime)
}
