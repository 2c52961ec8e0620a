// Package ideal tells what a perfect queue would have made of the calls of a block: the
// same arrivals and the same service times, one line for all slots, and no cost for
// anything (M/G/k where arrivals are Poisson). How far a balancer is from that is what it
// costs its callers.
//
// It is for calls of the worker that comes with the lab, which take as long as their
// requests say, in an open loop: Times reads the requests, Queue serves them.
package ideal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/work/workerpb"
)

// Method is the one whose calls say how long they take.
const Method = "cabrank.lab.v1.Worker/Work"

// Times is how long the call of a number takes at an idle worker.
type Times func(number uint64) time.Duration

// TimesOf reads the template of the requests, as those who call do, with the seed of
// their plan.
//
// Errors: one line for a template that is none of the method's.
func TimesOf(ctx context.Context, data string, seed uint64) (Times, error) {
	m, err := method.FromRegistry(protoregistry.GlobalFiles, Method)
	if err != nil {
		return nil, err
	}
	requests, err := m.Requests(ctx, method.Data{Name: "data", Text: []byte(data), Seed: seed})
	if err != nil {
		return nil, err
	}
	return func(number uint64) time.Duration {
		var request workerpb.WorkRequest
		if proto.Unmarshal(requests.Messages(number)[0], &request) != nil {
			return 0 // it was encoded above
		}
		return time.Duration((request.GetSleepMs() + request.GetCpuMs()) * float64(time.Millisecond))
	}, nil
}

// Queue returns how long the counted calls of a plan take in one queue for so many slots.
//
// Errors: one line for plans of which that cannot be told: in a closed loop answers decide
// when calls come, and with deadlines not all calls are served.
func Queue(p traffic.Plan, times Times, slots int) (*latency.Histogram, error) {
	switch {
	case !p.Open():
		return nil, errors.New("a closed loop has no ideal queue: calls come when others are answered")
	case p.Timeout > 0:
		return nil, errors.New("calls with a deadline have no ideal queue: which of them are served is a choice")
	case slots < 1:
		return nil, fmt.Errorf("%d slots: want at least one", slots)
	}
	p.Part, p.Parts = 0, 1 // all of them stand in one line
	var calls []oneslot.Call
	var counted []bool
	for a := range p.Arrivals() {
		calls = append(calls, oneslot.Call{At: a.Due, Service: times(a.Number)})
		counted = append(counted, a.Counted)
	}
	all := latency.New()
	for i, took := range oneslot.Ideal(calls, slots) {
		if counted[i] {
			all.Record(took)
		}
	}
	return all, nil
}
