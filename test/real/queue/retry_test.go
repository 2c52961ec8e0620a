//go:build real || soak

package queue_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

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
	if sent > 60 || noSlot < 200 {
		t.Errorf("%v hedges at full load; %v had no slot", sent, noSlot)
	}
	load.WantNoFailure(t)
	c.Stop()
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
	if retries == 0 || retries > deaths*slots {
		t.Errorf("%v retries for %d deaths of workers with %d slots", retries, deaths, slots)
	}
	if got := c.Metric("cabrank_calls_total"); got != float64(len(all)) {
		t.Errorf("the page counts %v calls, callers made %d", got, len(all))
	}
	c.Stop()
	for id, times := range c.Taken() {
		if times > 2 {
			t.Errorf("call %s ran %d times", id, times)
		}
	}
}
