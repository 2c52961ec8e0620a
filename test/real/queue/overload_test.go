//go:build real || soak

package queue_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startBurst makes a call of 20 ms every 3 ms, whether others have ended or not, each
// with a deadline of 300 ms, until it is told to stop.
func startBurst(t *testing.T, c *harness.Cabrank) (stop func()) {
	t.Helper()
	client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		every := time.NewTicker(3 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil {
			<-every.C
			over.Go(func() {
				limited, done := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer done()
				_, _ = client.Io(limited, &workpb.IoRequest{Millis: 20}) // most of them fail
			})
		}
	})
	stop = func() {
		cancel()
		over.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// More calls than one worker with two slots can serve are told of in the log, on the
// metrics page and by cabrank status, while they come; and that it is over.
func TestOverloadIsTold(t *testing.T) {
	const begins, ends = "overload: more calls come than can end before their deadlines; the newest go first", "the overload is over"
	worker := harness.ChaosWorker(t, filepath.Join(t.TempDir(), "ledger"))
	c := harness.StartControlled(t, worker, "--workers", "1", "--slots", "2")
	c.WaitReady(harness.Patience)
	wantTold := func(overload bool) {
		t.Helper()
		c.Wait(harness.Patience, "the gauge to tell it", func() bool { return (c.Metric("cabrank_overload") == 1) == overload })
		text := c.Must("status")
		testkit.Want(t, strings.Contains(text, "overload") == overload, "an overload: %v; cabrank status says\n%s", overload, text)
	}
	wantTold(false)
	stop := startBurst(t, c.Cabrank)
	c.WaitLog(harness.Patience, begins)
	wantTold(true)
	stop()
	c.WaitLog(harness.Patience, ends)
	wantTold(false)
	began := c.LogLines(begins)
	testkit.Want(t, len(began) == 1 && began[0].Text("level") == "WARN" && began[0].Text("callers") == "1", "the log has %v", began)
	ended := c.LogLines(ends)
	testkit.Want(t, len(ended) == 1 && ended[0].Text("lasted") != "", "the log has %v", ended)
}

// withMethodRule returns flags by which the unary calls of these tests are
// idempotent and have what the lines of rule say.
func withMethodRule(t *testing.T, rule string) []string {
	t.Helper()
	text := fmt.Sprintf("methods:\n  %s:\n    idempotent: true\n%s", workpb.Work_Io_FullMethodName, rule)
	file := harness.WriteFile(t, "cabrank.yaml", text)
	return []string{"--config", file}
}

// With every slot in use there are no hedges, however late calls are. A moment in
// which the callers are not as quick as the workers is no fault.
func TestNoHedgesAtFullLoad(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t), append(withMethodRule(t, "    hedge_after: 5ms\n"), "--workers", "2", "--slots", "2")...).Booted(2)
	load := harness.StartLoad(t, c.Addr, 24, harness.ShortWork)
	load.WaitAnswered(t, "", 300)
	sent, noSlot := c.Metric("cabrank_hedges_total", "result", "sent"), c.Metric("cabrank_hedges_total", "result", "no_slot")
	testkit.Want(t, sent <= 60 && noSlot >= 200, "%v hedges at full load; %v had no slot", sent, noSlot)
	load.WantNoFailure(t)
}

// With retries nobody notices that workers die: what they had is run once more by
// another one. Compare TestWorkerDiesUnderLoad.
func TestRetriesHideDeaths(t *testing.T) {
	const slots, deaths = 3, 3
	c := harness.StartFault(t, harness.FaultWorker(t), append(withMethodRule(t, "    retries: 3\n"), "--workers", "2", "--slots", strconv.Itoa(slots))...).Booted(2)
	load := harness.StartLoad(t, c.Addr, 2*slots+2, harness.ShortWork)
	for death := range deaths {
		load.WaitAnswered(t, "worker-1", 20)
		pids := c.ReadyPIDs("worker-1")
		c.KillPID(pids[len(pids)-1])
		c.Wait(harness.Patience, "the return of worker-1", func() bool { return len(c.ReadyPIDs("worker-1")) == death+2 })
	}
	load.WaitAnswered(t, "worker-1", 20)
	all := load.Stop()
	for _, o := range harness.Failures(all) {
		t.Errorf("call %s: %v", o.ID, o.Err)
	}
	retries := c.Metric("cabrank_retries_total", "reason", "worker_lost")
	testkit.Want(t, retries != 0 && retries <= deaths*slots, "%v retries for %d deaths of workers with %d slots", retries, deaths, slots)
	testkit.Equal(t, c.Metric("cabrank_calls_total"), float64(len(all)), "calls that the page counts")
	c.Stop()
	for id, times := range c.Taken() {
		testkit.Want(t, times <= 2, "call %s ran %d times", id, times)
	}
}
