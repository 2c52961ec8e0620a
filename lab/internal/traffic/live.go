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
	// P50 and P99 are those of the answers that came in it, to 6 %.
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
	var last Coarse
	for _, t := range l.tallies {
		t.add(&live, &last, counted)
	}
	live.PerSecond = float64(last.Count()) / l.tallies[0].record.Timeline.Step.Seconds()
	live.P50, live.P99 = last.Quantile(0.5), last.Quantile(0.99)
	return live
}

// Follow tells once a second how a load goes, until the function that it returns is called.
func Follow(live func() Live, tell func(Live)) (end func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() { // ends by end
		defer close(over)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell(live())
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

// add adds what one tally knows, and the answers that came to it in the last whole interval.
func (t *tally) add(live *Live, last *Coarse, counted time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record
	live.Answered += r.Calls.Answered.Count()
	live.Failed += r.Calls.Failed.Count()
	live.Unsent += r.Unsent.Full + r.Unsent.Late
	if i := int(counted/r.Timeline.Step) - 1; i >= 0 && t.came[i%len(t.came)].interval == i {
		last.merge(&t.came[i%len(t.came)].took)
	}
}
