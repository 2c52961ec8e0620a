package made

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Record is that of an open loop without a call.
func Record(counted time.Duration) *traffic.Record {
	return &traffic.Record{
		Loop: traffic.OpenLoop, Plan: "open loop", Counted: counted,
		Calls: latency.NewCalls(), Unsent: traffic.Unsent{Ages: latency.New()}, Open: latency.New(),
		First: latency.New(), Lag: latency.New(), Failures: []traffic.Failure{}, Workers: traffic.Shares{},
		Timeline: traffic.Timeline{Step: time.Second, Intervals: make([]traffic.Interval, counted/time.Second)},
	}
}

// Load is the record of so many calls a second: each takes some time but one in ten, that of
// worker-2, which takes twice as long. In the seconds that broken names all fail.
func Load(perSecond, seconds int, takes time.Duration, broken ...int) *traffic.Record {
	r := Record(time.Duration(seconds) * time.Second)
	for second := range r.Timeline.Intervals {
		i := &r.Timeline.Intervals[second]
		i.Due = int64(perSecond)
		r.Due += i.Due
		for n := range perSecond {
			worker, took := "worker-1", takes
			if n%10 == 9 {
				worker, took = "worker-2", 2*takes
			}
			if slices.Contains(broken, second) {
				r.Calls.Fail(14, time.Millisecond)
				i.Failed++
				continue
			}
			r.Calls.Answer(took)
			r.Workers[worker]++
			r.Came++
			i.Answered++
			i.Came++
		}
	}
	return r
}
