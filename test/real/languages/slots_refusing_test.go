//go:build soak

package languages_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

const noThread = "ResourceExhausted: No free threads in thread pool"

// Calls one after the other at a worker of one slot, each sent as soon as the one before is
// answered, find a thread (R1).
func TestRubyWithOneSlotRefusesNoCall(t *testing.T) {
	c := harness.StartLangCabrank(t, "ruby", "--workers", "1", "--slots", "1")
	wantNoneRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 5_000, 1), 5_000)
	c.Stop()
}

// wantNoneRefused checks that no call was refused, and none failed otherwise. On a machine
// that is not idle the system may run a thread late: 1 call in 200 may meet that.
func wantNoneRefused(t *testing.T, failed map[string]int, calls int) {
	t.Helper()
	refused := failed[noThread]
	delete(failed, noThread)
	t.Logf("%d of %d calls refused", refused, calls)
	if refused > calls/200 || len(failed) > 0 {
		t.Errorf("%d of %d calls refused, others failed with %v; want none", refused, calls, failed)
	}
}

// Ruby's pool refuses calls even when there are no more of them than threads; no caller of
// cabrank sees that where the pool has the threads that it is told of. A pool that somebody
// fixed is warned of, and its refusals are passed on (R1).
func TestRubyRefusals(t *testing.T) {
	const slots = 8
	t.Run("without cabrank", func(t *testing.T) {
		addr := harness.StartLangWorker(t, "ruby", fmt.Sprintf("RAILS_MAX_THREADS=%d", slots))
		if failed := harness.CallCPU(t, harness.Dial(t, addr), 2000, 20); failed[noThread] == 0 {
			t.Errorf("this worker never refuses, so the test proves nothing: %v", failed)
		}
	})
	start := func(prefix ...string) *harness.Cabrank {
		args := slices.Concat([]string{"--workers", "1", "--slots", strconv.Itoa(slots), "--"}, prefix, harness.ReadLangExample(t, "ruby").Worker)
		c := harness.StartCabrankEnv(t, harness.LangEnv(t), args...)
		c.WaitReady(harness.LangBound)
		return c
	}
	const warning = "a worker says that it has no free thread"
	t.Run("as many threads as it is told of", func(t *testing.T) {
		c := start()
		for _, inFlight := range []int{4, 8, 10, 20} {
			wantNoneRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, inFlight), 2000)
		}
		c.Stop()
	})
	t.Run("a fixed pool", func(t *testing.T) {
		c := start("env", "RAILS_MAX_THREADS=3")
		failed := harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, 20)
		if failed[noThread] == 0 || len(failed) != 1 {
			t.Errorf("failed calls by status: %v; want refusals that are passed on", failed)
		}
		c.Wait(harness.Patience, "the log to warn", func() bool { return strings.Contains(c.Log(), warning) })
		if n := strings.Count(c.Log(), warning); n != 1 || !strings.Contains(c.Log(), `"worker":"worker-1","slots":8`) {
			t.Errorf("%d warnings, want one of worker-1 and its 8 slots:\n%s", n, c.Log())
		}
		c.Stop()
	})
}
