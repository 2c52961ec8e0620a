//go:build soak

package languages_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
	"github.com/cabrank/cabrank/test/real/oneslot"
)

// R5: one half of the callers leaves half way, and the handlers go on. No later call is sent to
// wait behind such a ghost, least of all while the other worker has nothing to do, or is refused.
func TestCallsDoNotWaitBehindGhosts(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	for _, lang := range []string{"python", "ruby"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			ghosts(t, lang)
		})
	}
}

func ghosts(t *testing.T, lang string) {
	t.Helper()
	const service, calls = 300 * time.Millisecond, 60
	c, records := harness.OneThread(t, lang)
	trial := oneslot.Trial{Addr: c.Addr, Calls: oneslot.Draw(3, calls, service*5/6)} // two workers are busy for 60 % of the time
	for i := range trial.Calls {
		call := &trial.Calls[i]
		call.Method, call.Service = workpb.Work_Io_FullMethodName, service
		call.Request = &workpb.IoRequest{Millis: uint32(service.Milliseconds())}
		if i%2 == 1 {
			call.Leave = service / 2
		}
	}
	outcomes, err := trial.Run(t.Context())
	testkit.Must(t, err)
	c.Stop()
	all, err := oneslot.ReadFolder(records)
	testkit.Must(t, err)
	refused := 0
	for i, o := range outcomes {
		switch {
		case o.Code == codes.ResourceExhausted && o.Message == "No free threads in thread pool":
			refused++ // Ruby has no call wait for its thread
		case o.Code != codes.OK && (i%2 == 0 || o.Code != codes.Canceled):
			t.Errorf("call %d: %v %q", i, o.Code, o.Message)
		}
	}
	behind, waited := behindGhosts(t, outcomes, all)
	t.Logf("%s: %d runs; %d calls refused, %d waited at a worker, %d of them while the other one was idle", lang, len(all), refused, waited, len(behind))
	// The slack is for a machine that stands still; if slots were free at a cancel,
	// a third of the calls would wait at their worker.
	testkit.Want(t, waited+refused <= calls/10, "%d calls waited for others at their worker, or were refused", waited+refused)
	testkit.Want(t, len(behind) <= calls/15,
		"%d calls waited behind others at a worker while the other one was idle:\n%v", len(behind), behind)
}

// behindGhosts finds the calls that began well after they were sent to their
// worker, though another worker ran nothing meanwhile. When a call was sent to a
// worker is told by its time in the queue, to the millisecond.
func behindGhosts(t *testing.T, outcomes []oneslot.Outcome, all []oneslot.Record) (behind []string, waited int) {
	t.Helper()
	const tolerance = 100 * time.Millisecond // what a busy machine takes to start a thread
	began := map[int]oneslot.Record{}
	for _, r := range all {
		began[r.Call] = r
	}
	for i, o := range outcomes {
		queued := o.Trailer.Get("cabrank-queue-ms")
		if o.Code != codes.OK {
			continue
		}
		ms, err := strconv.ParseFloat(slices.Concat(queued, []string{"none"})[0], 64)
		testkit.Need(t, err == nil, "call %d: the trailer cabrank-queue-ms is %v", i, queued)
		run, sent := began[i], o.Sent+time.Duration(ms*float64(time.Millisecond))
		if run.Began-sent < tolerance {
			continue
		}
		waited++
		if idle := idleWithin(all, run.Worker, sent, run.Began); idle > tolerance {
			behind = append(behind, fmt.Sprintf("call %d waited for %v at %s, for %v of that another was idle\n", i, run.Began-sent, run.Worker, idle))
		}
	}
	return behind, waited
}

// idleWithin returns for how long the workers but one ran nothing, all together,
// between two moments. With two workers that is the other one.
func idleWithin(all []oneslot.Record, but string, from, to time.Duration) time.Duration {
	idle := to - from
	for _, r := range all {
		if r.Worker != but {
			idle -= max(min(r.Ended, to)-max(r.Began, from), 0)
		}
	}
	return idle
}
