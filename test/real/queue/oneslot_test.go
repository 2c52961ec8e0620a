//go:build real || soak

package queue_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
	"github.com/cabrank/cabrank/test/real/oneslot"
)

// oneSlots is cabrank over workers of one slot.
//
// Life: startOneSlots; try as often as wanted; finish ends it and judges.
type oneSlots struct {
	*harness.Cabrank

	number  int    // workers
	records string // folder
}

// oneSlotOptions are what differs between tests.
type oneSlotOptions struct {
	worker []string // flags of the workers
	flags  []string // of cabrank
	env    []string // "NAME=value", for both
}

// startOneSlots starts cabrank over so many workers, each of one slot, and waits
// until all are ready.
func startOneSlots(t *testing.T, number int, o oneSlotOptions) *oneSlots {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	records := t.TempDir()
	n := strconv.Itoa(number)
	args := slices.Concat([]string{"--transport", "unix", "--workers", n, "--min-ready", n, "--slots", "1"}, o.flags,
		[]string{"--", self, oneslot.Role, "-records", records}, o.worker)
	s := &oneSlots{Cabrank: harness.StartCabrankEnv(t, o.env, args...), number: number, records: records}
	s.WaitReady(harness.Patience)
	return s
}

// try has calls made and returns how each ended.
func (s *oneSlots) try(trial *oneslot.Trial) []oneslot.Outcome {
	s.T.Helper()
	trial.Addr = s.Addr
	outcomes, err := trial.Run(context.Background()) // the calls have deadlines, or end with cabrank
	testkit.Must(s.T, err)
	return outcomes
}

// finish stops cabrank and its workers, which end what they have begun first, and puts together
// what both ends have seen. A call is never run twice and never answered by nobody.
func (s *oneSlots) finish(trial oneslot.Trial, outcomes []oneslot.Outcome) oneslot.Finding {
	s.T.Helper()
	f := s.judge(trial, outcomes)
	testkit.Want(s.T, f.Twice == 0, "%d calls ran twice", f.Twice)
	return f
}

// judge is finish for calls that may run twice.
func (s *oneSlots) judge(trial oneslot.Trial, outcomes []oneslot.Outcome) oneslot.Finding {
	s.T.Helper()
	s.Stop()
	records, err := oneslot.ReadFolder(s.records)
	testkit.Must(s.T, err)
	f := oneslot.Judge(trial, outcomes, s.number, records)
	s.T.Logf("%v", f)
	testkit.Want(s.T, f.Unseen == 0, "%d calls were answered and ran nowhere", f.Unseen)
	return f
}

// demand is calls of mixed length for the workers of s.
func (s *oneSlots) demand(seed uint64, calls int, load float64) []oneslot.Call {
	return oneslot.Draw(seed, calls, time.Duration(float64(oneslot.MeanService)/load/float64(s.number)))
}

// overloadDeadline is what callers have in an overload.
const overloadDeadline = 500 * time.Millisecond

// queueTrial holds cabrank to what a queue in front of workers of one slot
// promises at an ordinary load: no two calls meet at a worker, and the p99 is
// that of a perfect queue for the same calls, times most.
func queueTrial(t *testing.T, seed uint64, calls int, most float64, slack time.Duration) {
	t.Helper()
	s := startOneSlots(t, 4, oneSlotOptions{})
	trial := oneslot.Trial{Calls: s.demand(seed, calls, 0.7)}
	f := s.finish(trial, s.try(&trial))
	testkit.Want(t, f.InTime == calls, "%d of %d calls were answered: %v", f.InTime, calls, f.Statuses)
	testkit.Want(t, f.Overlaps == 0, "%d calls met another one at their worker", f.Overlaps)
	testkit.Want(t, f.P99 <= time.Duration(float64(f.IdealP99)*most)+slack, "p99 %v, a perfect queue had %v", f.P99, f.IdealP99)
}

// overloadTrial holds cabrank to R16: with 1.4 times what the workers can do and
// handlers that run to their end, most calls are answered in time and none is
// begun for a caller that has gone (but for what the comment below says).
func overloadTrial(t *testing.T, seed uint64, calls int, busy oneslot.WhenBusy, least float64) {
	t.Helper()
	worker := []string{"-busy", string(busy)}
	if busy == oneslot.Refuse {
		worker = append(worker, "-lag", "500us") // as Ruby's
	}
	s := startOneSlots(t, 4, oneSlotOptions{worker: worker})
	trial := oneslot.Trial{Timeout: overloadDeadline, Calls: s.demand(seed, calls, 1.4)}
	f := s.finish(trial, s.try(&trial))
	got := f.InTimeShare()
	testkit.Want(t, got >= least, "%.1f %% answered in time, want at least %.0f %%", 100*got, 100*least)
	mostLate := 2 * s.number // on their way while the machine stood still
	if busy == oneslot.Queue {
		// Nobody tells when a handler is through whose caller has gone, so now and
		// then a call meets it at the worker (R5). This one would run all the same.
		mostLate += calls / 100
	}
	testkit.Want(t, f.Late <= mostLate, "%d calls began after their deadline, one of them by %v", f.Late, f.Latest)
}
