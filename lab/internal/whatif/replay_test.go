package whatif

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Two slots and calls that come every 10 ms: those of 15 ms do not wait, those of 30 ms
// wait longer and longer, until their deadlines.
func TestReplay(t *testing.T) {
	t.Parallel()
	plan, err := traffic.Options{Rate: "100", Duration: time.Second, Warmup: 100 * time.Millisecond}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	r := Replay{
		Plan: plan, Workers: 2, Slots: 1, Policy: Cabrank, Echo: time.Millisecond, Queue: Queue{Length: 1000, Timeout: time.Minute},
		Service: func(uint64) time.Duration { return 15 * time.Millisecond },
	}
	record, err := r.Record()
	if err != nil || record.Due != 100 || record.Calls.Answered.Count() != 100 || record.Warmup.Calls != 10 || record.Counted != time.Second ||
		record.Latency().Max().Round(100*time.Microsecond) != 16*time.Millisecond || record.Timeline.Intervals[0].Answered != 100 {
		t.Errorf("%+v, %v", record, err)
	}
	r.Service = func(uint64) time.Duration { return 30 * time.Millisecond }
	slow, err := r.Record()
	if err != nil || slow.Latency().Max() < 300*time.Millisecond {
		t.Errorf("longest %v, %v", slow.Latency().Max(), err)
	}
	r.Plan.Timeout, r.Plan.Rate[0].Length = 100*time.Millisecond, 20*time.Second
	for _, p := range Policies() {
		r.Policy = p
		late, err := r.Record()
		if err != nil || late.FailedShare() < 0.3 || p == Cabrank && late.FailedShare() > 0.5 || late.Calls.Answered.Max() > 101*time.Millisecond {
			t.Errorf("%s: %.2f failed, longest %v, %v", p, late.FailedShare(), late.Calls.Answered.Max(), err)
		}
	}
	r.Plan = traffic.Plan{}
	if _, err := r.Record(); err == nil {
		t.Error("a closed loop is simulated")
	}
}
