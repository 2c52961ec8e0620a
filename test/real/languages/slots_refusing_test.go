//go:build real

package languages_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

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
		if lines := refusing(c); len(lines) == 0 {
			t.Error("the log does not tell that the worker keeps refusing")
		}
		c.Stop()
	})
}
