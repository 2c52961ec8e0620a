package trial

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/work"
)

// against holds a block against a perfect queue for the same calls, where there is one:
// for workers whose calls say how long they take, all alike, with a number of slots, in an
// open loop without deadlines and disturbances.
func (t *trial) against(c *cell, plan traffic.Plan, b *result.Block, r *traffic.Record) {
	w := c.arm.Workers
	slots := w.Slots * workersAt(c.arm, c.load)
	method, data, _ := t.Scenario.CallAt(c.load)
	if method != workMethod || w.Program != scenario.ProgramWorker || len(c.load.Events) > 0 {
		return
	}
	times, err := timesOf(data, plan.Seed)
	if err != nil {
		return // then nobody could have called
	}
	if best := idealQueue(plan, times, slots); best != nil {
		b.Against(r, best)
	}
}

// workMethod is the one whose calls say how long they take.
const workMethod = "cabrank.lab.v1.Worker/Work"

// timesOf tells how long the call of a number takes at an idle worker. It reads the template
// of the requests, as those who call do, with the seed of their plan.
//
// Errors: one line for a template that is none of the method's.
func timesOf(data string, seed uint64) (func(number uint64) time.Duration, error) {
	m, err := method.FromRegistry(protoregistry.GlobalFiles, workMethod)
	if err != nil {
		return nil, err
	}
	requests, err := m.Requests(method.Data{Name: "data", Text: []byte(data), Seed: seed})
	if err != nil {
		return nil, err
	}
	return func(number uint64) time.Duration {
		var request work.WorkRequest
		if messages := requests.Messages(number); messages == nil || proto.Unmarshal(messages[0], &request) != nil {
			return 0 // no such call was made, or it was encoded above
		}
		return time.Duration((request.GetSleepMs() + request.GetCpuMs()) * float64(time.Millisecond))
	}, nil
}

// idealQueue returns how long the counted calls of a plan take in one queue for so many
// slots, without any cost (M/G/k where arrivals are Poisson); nil for plans of which that
// cannot be told: in a closed loop answers decide when calls come, and with deadlines not all
// calls are served.
func idealQueue(p traffic.Plan, times func(number uint64) time.Duration, slots int) *latency.Histogram {
	if !p.Open() || p.Timeout > 0 || slots < 1 {
		return nil
	}
	p.Part, p.Parts = 0, 1 // all of them stand in one line
	var calls []ranksim.Call
	var counted []bool
	for a := range p.Arrivals() {
		calls = append(calls, ranksim.Call{Arrives: a.Due, Service: times(a.Number)})
		counted = append(counted, a.Counted)
	}
	all := latency.New()
	for i, r := range ranksim.FirstCome(calls, slots, ranksim.Handlers{}).Records {
		if counted[i] {
			all.Record(r.Sojourn)
		}
	}
	return all
}
