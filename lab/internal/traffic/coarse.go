package traffic

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

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
