package traffic

import "time"

// Live is how a load goes.
type Live struct {
	// Elapsed is the time since it began, Length that for which calls start.
	Elapsed, Length time.Duration
	// Warmup is true until the counted part begins.
	Warmup bool
	// Answered, Failed and Unsent are calls of the counted part so far.
	Answered, Failed, Unsent int64
	// UnderWay are calls that were sent and have not ended.
	UnderWay int64
	// PerSecond is how many answers came in each second of the last whole
	// interval of the timeline; 0 before there is one.
	PerSecond float64
	// P50 and P99 are those of the calls that were due in it and answered, to 6 %.
	P50, P99 time.Duration
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
	var last Interval
	for _, t := range l.tallies {
		t.add(&live, &last, counted)
	}
	live.PerSecond = float64(last.Came) / l.tallies[0].record.Timeline.Step.Seconds()
	live.P50, live.P99 = last.Latencies.Quantile(0.5), last.Latencies.Quantile(0.99)
	return live
}

// add adds what one tally knows, and its part of the last whole interval.
func (t *tally) add(live *Live, last *Interval, counted time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record
	live.Answered += r.Calls.Answered.Count()
	live.Failed += r.Calls.Failed.Count()
	live.Unsent += r.Unsent.Full + r.Unsent.Late
	if i := int(counted/r.Timeline.Step) - 1; counted >= r.Timeline.Step && i < len(r.Timeline.Intervals) {
		last.merge(&r.Timeline.Intervals[i])
	}
}
