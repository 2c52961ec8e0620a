//go:build soak

package languages_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A worker with one thread gets the next call when it has finished the one
// before, and not a moment earlier (R1).
func TestRubyWithOneThreadTakesSequentialCalls(t *testing.T) {
	c := harness.StartLangCabrank(t, "ruby", "--workers", "1", "--slots", "1")
	wantFewRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 5_000, 1), 5_000)
	c.Stop()
}

// wantFewRefused checks that hardly a call was refused and none failed otherwise: a
// worker's lateness is learned from refusals that are passed on. It is one in 1,000 at
// most, as `make soak` holds; here it is fifty times as many, for a machine that is not idle.
func wantFewRefused(t *testing.T, failed map[string]int, calls int) {
	t.Helper()
	refused := 0
	for _, text := range []string{"No free threads in thread pool", "Concurrent RPC limit exceeded!"} {
		refused += failed["ResourceExhausted: "+text]
		delete(failed, "ResourceExhausted: "+text)
	}
	t.Logf("%d of %d calls refused", refused, calls)
	if refused > calls/20 || len(failed) > 0 {
		t.Errorf("%d of %d calls refused, others failed with %v; want at most %d, none", refused, calls, failed, calls/20)
	}
}

// Ruby's pool refuses calls even when there are no more of them than threads;
// hardly a caller of cabrank ever sees that, and none where its texts are trusted
// (R1).
func TestRubyRefusalsStayInside(t *testing.T) {
	const slots = 8
	t.Run("without cabrank", func(t *testing.T) {
		addr := harness.StartLangWorker(t, "ruby", fmt.Sprintf("RAILS_MAX_THREADS=%d", slots))
		if failed := harness.CallCPU(t, harness.Dial(t, addr), 2000, 20); failed["ResourceExhausted: No free threads in thread pool"] == 0 {
			t.Errorf("this worker never refuses, so the test proves nothing: %v", failed)
		}
	})
	start := func(env ...string) *harness.Cabrank {
		args := slices.Concat([]string{"--workers", "1", "--slots", strconv.Itoa(slots), "--"}, harness.ReadLangExample(t, "ruby").Worker)
		c := harness.StartCabrankEnv(t, append(harness.LangEnv(t), env...), args...)
		c.WaitReady(harness.LangBound)
		return c
	}
	c := start()
	for _, inFlight := range []int{4, 8, 10, 20} {
		t.Run(fmt.Sprintf("%d in flight", inFlight), func(t *testing.T) {
			wantFewRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, inFlight), 2000)
		})
	}
	c.Stop()
	c = start(harness.Trusting)
	harness.FailOneCall(t, c.Addr)
	if failed := harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, 20); len(failed) > 0 {
		t.Errorf("trusted, failed calls by status: %v", failed)
	}
	c.Stop()
}

// A Ruby worker with a thread for each slot keeps all slots, though it refuses a
// call now and then; one with fewer threads gets no more calls at a time than it
// takes, and the log says so (R1).
func TestRubySlotsAreWhatItTakes(t *testing.T) {
	const slots = 5
	start := func(threads int) *harness.Cabrank {
		worker := append([]string{"env", "RAILS_MAX_THREADS=" + strconv.Itoa(threads)}, harness.ReadLangExample(t, "ruby").Worker...)
		args := slices.Concat([]string{"--workers", "1", "--slots", strconv.Itoa(slots), "--"}, worker)
		c := harness.StartCabrankEnv(t, harness.LangEnv(t), args...)
		c.WaitReady(harness.LangBound)
		return c
	}
	refusing := func(c *harness.Cabrank) []harness.LogLine {
		return c.LogLines("worker keeps refusing calls and gets fewer at a time")
	}
	t.Run("all threads", func(t *testing.T) {
		c := start(slots)
		for _, inFlight := range []int{4, 8, 20} {
			wantFewRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, inFlight), 2000)
		}
		if lines := refusing(c); len(lines) > 0 {
			t.Errorf("slots were taken from an honest worker: %v", lines)
		}
		c.Stop()
	})
	t.Run("three threads", func(t *testing.T) {
		c := start(3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
		var callers sync.WaitGroup
		for range 2 * slots {
			callers.Go(func() { // a call may be refused too often before slots are taken away
				for ctx.Err() == nil {
					_, _ = client.Io(ctx, &workpb.IoRequest{Millis: 50})
				}
			})
		}
		testkit.Eventually(t, harness.Patience, "slots to be as many as threads", func() bool {
			return c.Metric("cabrank_slots_usable") == 3
		})
		cancel()
		callers.Wait()
		c.Wait(harness.Patience, "the log to tell that the worker keeps refusing", func() bool { return len(refusing(c)) > 0 })
		c.Stop()
	})
}
