package traffic

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

const (
	// mostIntervals bounds a timeline: ten minutes by second, longer plans in
	// longer intervals.
	mostIntervals = 600
	// mostCount is how many calls of a kind a record that is read may have.
	mostCount = 1 << 53
)

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
	// Latencies are those of Answered.
	Latencies Coarse `json:"latencies"`
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
	i.Latencies.merge(&other.Latencies)
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

// Coarse counts durations for a plot, where latency.Histogram would be too large to
// have one for each second: a quantile is at most 6.3 % above the true one. It takes
// 4 KB, and nothing while it is empty. The zero value is empty.
//
// In JSON it is a list of [nanoseconds, calls], in order, without what did not occur.
// Units: from 1 µs to latency.Bound; what is outside counts as the nearer of them.
// Concurrency: none.
type Coarse struct {
	hdr *hdrhistogram.Histogram // nil while empty
}

func (c *Coarse) record(d time.Duration, times int64) {
	if c.hdr == nil {
		c.hdr = hdrhistogram.New(int64(time.Microsecond), int64(latency.Bound), 1)
	}
	// It cannot fail: the value is in range.
	_ = c.hdr.RecordValues(int64(min(max(d, time.Microsecond), latency.Bound)), times)
}

func (c *Coarse) merge(other *Coarse) {
	for _, bar := range other.bars() {
		c.record(time.Duration(bar.From), bar.Count)
	}
}

// bars are the buckets in use.
func (c *Coarse) bars() (used []hdrhistogram.Bar) {
	if c.hdr == nil {
		return nil
	}
	for _, bar := range c.hdr.Distribution() {
		if bar.Count > 0 {
			used = append(used, bar)
		}
	}
	return used
}

// Count returns how many durations there are.
func (c *Coarse) Count() int64 {
	if c.hdr == nil {
		return 0
	}
	return c.hdr.TotalCount()
}

// Quantile returns the duration that the share (0.99 is p99) did not exceed, 0 of
// nothing. It is for a plot: few calls do not stop it.
func (c *Coarse) Quantile(share float64) time.Duration {
	if c.hdr == nil {
		return 0
	}
	return time.Duration(min(c.hdr.ValueAtPercentile(100*share), int64(latency.Bound)))
}

// MarshalJSON writes the buckets in use.
func (c Coarse) MarshalJSON() ([]byte, error) {
	pairs := [][2]int64{}
	for _, bar := range c.bars() {
		pairs = append(pairs, [2]int64{min(bar.To, int64(latency.Bound)), bar.Count})
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON reads what MarshalJSON has written.
//
// Errors: one line, for a duration or a count that cannot be.
func (c *Coarse) UnmarshalJSON(data []byte) error {
	var pairs [][2]int64
	if err := json.Unmarshal(data, &pairs); err != nil {
		return err
	}
	var read Coarse
	for _, pair := range pairs {
		if pair[0] < 0 || pair[0] > int64(latency.Bound) || pair[1] < 1 || pair[1] > mostCount {
			return fmt.Errorf("timeline: %d calls of %d ns: want 1 to 2^53 calls of 0 ns to an hour", pair[1], pair[0])
		}
		read.record(time.Duration(pair[0]), pair[1])
	}
	*c = read
	return nil
}
