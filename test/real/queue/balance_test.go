//go:build real || soak

package queue_test

import (
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/test/real/oneslot"
)

// Every policy carries calls to all workers, and none of them loses one or lets
// two meet at a worker (R21: they share everything but the choice).
func TestBalancePolicies(t *testing.T) {
	const calls = 100
	for _, policy := range []string{"late_binding", "ring_hash:x-user"} {
		t.Run(policy, func(t *testing.T) {
			s := startOneSlots(t, 2, oneSlotOptions{
				flags: []string{"--balance", policy},
			})
			trial := oneslot.Trial{Calls: constant(calls, 10*time.Millisecond, 5*time.Millisecond, oneslot.Call{})}
			for i := range trial.Calls {
				trial.Calls[i].Metadata = []string{"x-user", strconv.Itoa(i % 16)}
			}
			outcomes := s.try(&trial)
			byWorker := map[string]int{}
			for i, o := range outcomes {
				byWorker[o.Worker]++
				if o.Code != codes.OK {
					t.Errorf("call %d: %v %q", i, o.Code, o.Message)
				}
			}
			if len(byWorker) != 2 {
				t.Errorf("calls by worker: %v, want some at both", byWorker)
			}
			if f := s.finish(trial, outcomes); f.Overlaps > 0 {
				t.Errorf("%d calls met another one at their worker", f.Overlaps)
			}
		})
	}
}

// By ring_hash calls of one user go to one worker while it is free.
func TestRingHashKeepsUsersTogether(t *testing.T) {
	const users, rounds = 8, 10
	s := startOneSlots(t, 3, oneSlotOptions{
		flags: []string{"--balance", "ring_hash:x-user"},
	})
	trial := oneslot.Trial{Calls: constant(users*rounds, 25*time.Millisecond, time.Millisecond, oneslot.Call{})}
	for i := range trial.Calls {
		trial.Calls[i].Metadata = []string{"x-user", "user-" + strconv.Itoa(i%users)}
	}
	outcomes := s.try(&trial)
	elsewhere := 0
	for i, o := range outcomes {
		if o.Code != codes.OK {
			t.Errorf("call %d: %v %q", i, o.Code, o.Message)
		}
		if o.Worker != outcomes[i%users].Worker {
			elsewhere++
		}
	}
	if elsewhere > users*rounds/5 { // a machine that stands still makes workers look busy; by chance it is two thirds
		t.Errorf("%d of %d calls went to another worker than their user's first", elsewhere, users*rounds)
	}
	s.finish(trial, outcomes)
}
