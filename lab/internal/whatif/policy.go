package whatif

import (
	"fmt"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
)

// Policy is a way to choose the worker of a call, by the name of its rank.Balance.
type Policy string

// The policies.
const (
	// Cabrank binds late: calls wait in one queue, bounded in length and time, and
	// one that cannot end before its deadline is refused.
	Cabrank Policy = "cabrank"

	// What follows chooses when a call comes, and the call waits at that worker, in the
	// order of arrival, for as long as its caller does. Each knows all calls, as one
	// balancer in front of all workers does.

	LeastRequest Policy = "least_request"
	P2C          Policy = "p2c"
	RoundRobin   Policy = "round_robin"
	Random       Policy = "random"
)

// Policies returns all of them, Cabrank first.
func Policies() []Policy { return []Policy{Cabrank, LeastRequest, P2C, RoundRobin, Random} }

// ParsePolicy reads the name of a policy, as it stands in JSON and in scenarios.
//
// Errors: one line that lists them.
func ParsePolicy(name string) (Policy, error) {
	var names []string
	for _, p := range Policies() {
		if string(p) == name {
			return p, nil
		}
		names = append(names, string(p))
	}
	return "", fmt.Errorf("policy %.40q: want one of %s", name, strings.Join(names, ", "))
}

// String is the name as people read it.
func (p Policy) String() string {
	if p == P2C {
		return "power of two choices"
	}
	return strings.ReplaceAll(string(p), "_", " ")
}

// balance is what the rank calls it.
func (p Policy) balance() rank.Balance {
	b, _ := rank.ParseBalance(string(p)) // LateBinding for Cabrank
	return b
}

// endless is the length of a queue that is never full.
const endless = 1 << 30

// system is workers behind the policy. Handlers run to their end when their caller has
// gone, as those of Ruby and of Python's threads do.
func (p Policy) system(workers, slots int, queue Queue, seed uint64) ranksim.System {
	s := ranksim.System{Rank: rank.Options{Balance: p.balance()}, Seed: seed}
	worker := ranksim.Worker{Slots: slots, RunsOn: true, OnCancel: rank.Hold}
	if p == Cabrank {
		s.Rank.QueueLength, s.QueueTimeout = queue.Length, queue.Timeout
	} else {
		s.Rank.QueueLength = endless
		s.Rank.Admit, s.Rank.Order = rank.BoundedLength, rank.FIFO
		worker.Queues = true // whatever comes, the worker takes it in
	}
	s.Workers = ranksim.Alike(workers, worker)
	return s
}

// Queue is what bounds the queue of Cabrank: queue.length and queue.timeout.
type Queue struct {
	Length  int           `json:"length"`
	Timeout time.Duration `json:"timeout_ns"`
}
