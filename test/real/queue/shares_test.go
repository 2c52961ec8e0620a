//go:build real || soak

package queue_test

import (
	"cmp"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
	"github.com/cabrank/cabrank/test/real/oneslot"
)

// constant makes calls that all take the same time, spread evenly, with the
// given method and metadata.
func constant(calls int, every, service time.Duration, like oneslot.Call) []oneslot.Call {
	all := make([]oneslot.Call, calls)
	for i := range all {
		all[i] = like
		all[i].At, all[i].Service = time.Duration(i)*every, service
	}
	return all
}

// together merges the calls of several callers, in the order in which they are
// due. of tells whose call each is.
func together(callers ...[]oneslot.Call) (all []oneslot.Call, of []int) {
	type one struct {
		oneslot.Call
		caller int
	}
	var mixed []one
	for caller, calls := range callers {
		for _, c := range calls {
			mixed = append(mixed, one{c, caller})
		}
	}
	slices.SortStableFunc(mixed, func(a, b one) int { return cmp.Compare(a.At, b.At) })
	for _, m := range mixed {
		all, of = append(all, m.Call), append(of, m.caller)
	}
	return all, of
}

// tookBy are the latencies of one caller's calls that went well, sorted, and the
// number of the others.
func tookBy(outcomes []oneslot.Outcome, of []int, caller int) (took []time.Duration, failed int) {
	for i, o := range outcomes {
		switch {
		case of[i] != caller:
		case o.Code == codes.OK:
			took = append(took, o.Took())
		default:
			failed++
		}
	}
	slices.Sort(took)
	return took, failed
}

// A caller that asks for three times what the workers can do waits for itself: another one, told
// apart by its metadata, gets all that it asks for, soon, from the first moment on.
func TestHeavyCallerWaitsForItself(t *testing.T) {
	const service = 20 * time.Millisecond
	s := startOneSlots(t, 2, oneSlotOptions{
		env: []string{"CABRANK_FAIR_KEY=metadata:x-tenant"}, flags: []string{"--queue", "100"},
	})
	// Two workers do 100 calls a second.
	heavy := constant(900, time.Second/300, service, oneslot.Call{Metadata: []string{"x-tenant", "heavy"}})
	light := constant(30, time.Second/10, service, oneslot.Call{Metadata: []string{"x-tenant", "light"}})
	var of []int
	trial := oneslot.Trial{}
	trial.Calls, of = together(heavy, light)
	outcomes := s.try(&trial)
	heavyTook, heavyFailed := tookBy(outcomes, of, 0)
	lightTook, lightFailed := tookBy(outcomes, of, 1)
	t.Logf("heavy: %s, %d refused; light: %s, %d refused", harness.SpreadOf(heavyTook), heavyFailed, harness.SpreadOf(lightTook), lightFailed)
	testkit.Want(t, lightFailed == 0, "%d calls of the light caller were refused", lightFailed)
	testkit.Want(t, heavyFailed != 0, "the heavy caller got all that it asked for: the test proves nothing")
	if light, heavy := lightTook[len(lightTook)*9/10], heavyTook[len(heavyTook)/2]; light > heavy/2 {
		t.Errorf("of the light caller's calls a tenth took more than %v, half of the heavy one's %v", light, heavy)
	}
	f := s.finish(trial, outcomes)
	testkit.Want(t, f.Overlaps == 0, "%d calls met another one at their worker", f.Overlaps)
}

// A lane with a slot of its own is answered at once while all others wait.
func TestReservedLaneIsAnsweredUnderFullLoad(t *testing.T) {
	const long = time.Second
	s := startOneSlots(t, 2, oneSlotOptions{
		env: []string{"CABRANK_LANES={admin: {methods: [/shop.Admin/*], priority: 10, reserve: 1}}"},
	})
	load := constant(8, 100*time.Millisecond, long, oneslot.Call{Method: "/shop.Catalog/Find"})
	admin := constant(20, 150*time.Millisecond, time.Millisecond, oneslot.Call{Method: "/shop.Admin/Look"})
	for i := range admin { // when the load is there
		admin[i].At += long
	}
	var of []int
	trial := oneslot.Trial{}
	trial.Calls, of = together(load, admin)
	outcomes := s.try(&trial)
	adminTook, failed := tookBy(outcomes, of, 1)
	t.Logf("admin calls: %s", harness.SpreadOf(adminTook))
	testkit.Want(t, failed == 0 && adminTook[len(adminTook)/2] <= long/5,
		"%d calls of the lane failed; half of the others took %v and more", failed, adminTook[len(adminTook)/2])
	if _, failed := tookBy(outcomes, of, 0); failed > 0 {
		t.Errorf("%d calls of no lane failed", failed)
	}
	s.finish(trial, outcomes)
}

// A caller may have so many calls at a time; others have their own.
func TestCallsPerKey(t *testing.T) {
	s := startOneSlots(t, 4, oneSlotOptions{
		env: []string{"CABRANK_FAIR_KEY=metadata:x-tenant", "CABRANK_LIMITS_CALLS=2"},
	})
	greedy := constant(5, 50*time.Millisecond, 2*time.Second, oneslot.Call{Metadata: []string{"x-tenant", "greedy"}})
	modest := constant(2, 50*time.Millisecond, time.Millisecond, oneslot.Call{Metadata: []string{"x-tenant", "modest"}})
	var of []int
	trial := oneslot.Trial{}
	trial.Calls, of = together(greedy, modest)
	outcomes := s.try(&trial)
	if took, failed := tookBy(outcomes, of, 0); len(took) != 2 || failed != 3 {
		t.Errorf("%d calls of the greedy caller were answered, %d refused; want 2 and 3", len(took), failed)
	}
	if _, failed := tookBy(outcomes, of, 1); failed > 0 {
		t.Errorf("%d calls of the modest caller were refused", failed)
	}
	for i, o := range outcomes {
		testkit.Want(t, o.Code == codes.OK || o.Code == codes.ResourceExhausted, "call %d: %v %q", i, o.Code, o.Message)
	}
	s.finish(trial, outcomes)
}

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
				testkit.Want(t, o.Code == codes.OK, "call %d: %v %q", i, o.Code, o.Message)
			}
			testkit.Want(t, len(byWorker) == 2, "calls by worker: %v, want some at both", byWorker)
			f := s.finish(trial, outcomes)
			testkit.Want(t, f.Overlaps == 0, "%d calls met another one at their worker", f.Overlaps)
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
		testkit.Want(t, o.Code == codes.OK, "call %d: %v %q", i, o.Code, o.Message)
		if o.Worker != outcomes[i%users].Worker {
			elsewhere++
		}
	}
	if elsewhere > users*rounds/5 { // a machine that stands still makes workers look busy; by chance it is two thirds
		t.Errorf("%d of %d calls went to another worker than their user's first", elsewhere, users*rounds)
	}
	s.finish(trial, outcomes)
}
