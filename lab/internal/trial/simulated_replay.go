package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// cabrank binds late: calls wait in one queue, bounded in length and time, and one that
// cannot end before its deadline is refused. The other policies choose when a call comes,
// and it waits at that worker, in the order of arrival, for as long as its caller does.
// Each knows all calls, as one balancer in front of all workers does.
const cabrank = "cabrank"

// The queue of `cabrank run` without flags; endless is the length of one that is never full.
const (
	queueLength  = 1000
	queueTimeout = 30 * time.Second
	endless      = 1 << 30
)

// balanceOf reads the name of a policy; without any it is Cabrank.
//
// Errors: one line that lists them.
func balanceOf(policy string) (rank.Balance, error) {
	names := []string{cabrank, "least_request", "p2c", "round_robin", "random"}
	policy = cmp.Or(policy, cabrank)
	if !slices.Contains(names, policy) {
		return 0, fmt.Errorf("policy %.40q: want one of %s", policy, strings.Join(names, ", "))
	}
	b, _ := rank.ParseBalance(policy) // late binding for Cabrank
	return b, nil
}

// system is workers behind a policy. Handlers run to their end when their caller has gone,
// as those of Ruby and of Python's threads do.
func (s *virtual) system(seed uint64) ranksim.System {
	system := ranksim.System{Rank: rank.Options{Balance: s.balance}, Seed: seed}
	worker := ranksim.Worker{Slots: s.slots, RunsOn: true, OnCancel: rank.Hold}
	if s.balance == rank.LateBinding {
		system.Rank.QueueLength, system.QueueTimeout = queueLength, queueTimeout
	} else {
		system.Rank.QueueLength = endless
		system.Rank.Admit, system.Rank.Order = rank.BoundedLength, rank.FIFO
		worker.Queues = true // whatever comes, the worker takes it in
	}
	system.Workers = ranksim.Alike(s.workers, worker)
	return system
}

// replay gives the calls of an open loop to the workers, and returns what a run with real
// ones would have measured.
//
// Errors: one line, for a template that is none of the method's.
func (s *virtual) replay(plan traffic.Plan) (*traffic.Record, error) {
	takes, err := s.service.times(context.Background(), plan.Seed)
	if err != nil {
		return nil, err
	}
	echo := s.service.echo
	var arrivals []traffic.Arrival
	var calls []ranksim.Call
	for a := range plan.Arrivals() {
		c := ranksim.Call{Arrives: a.Due, Service: max(takes(a.Number)-echo, 0)}
		if plan.Timeout > 0 {
			c.Deadline = a.Due + max(plan.Timeout-echo, 1)
		}
		arrivals, calls = append(arrivals, a), append(calls, c)
	}
	replay := traffic.NewReplay(plan)
	for i, r := range ranksim.Run(s.system(plan.Seed), calls).Records {
		replay.End(arrivals[i], r.Sojourn+echo, traffic.Answer{Code: uint32(codeOf(r.Ending))})
	}
	return replay.Record()
}

// codeOf is gRPC's code of an ending.
func codeOf(e ranksim.Ending) codes.Code {
	switch e {
	case ranksim.Answered:
		return codes.OK
	case ranksim.Refused, ranksim.Exhausted:
		return codes.ResourceExhausted
	default:
		return codes.DeadlineExceeded
	}
}
