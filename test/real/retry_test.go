//go:build real

package real_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// withMethodRule returns flags by which the unary calls of these tests are
// idempotent and have what the lines of rule say.
func withMethodRule(t *testing.T, rule string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cabrank.yaml")
	text := fmt.Sprintf("methods:\n  %s:\n    idempotent: true\n%s", workpb.Work_Io_FullMethodName, rule)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", file}
}

// Of four workers one stalls at each 25th of its calls. With hedging no caller has
// to wait for that, for little more work, and no call runs more than twice;
// without it those calls take as long as they do. The rank sees to it that they
// are few: a worker that was slow gets little more than a probe now and then.
func TestHedgesCutTheTail(t *testing.T) {
	const calls, stall = 600, 3 * time.Second
	worker := faultWorker(t, "-staller", "worker-1", "-stall", stall.String())
	run := func(rule string) (took []time.Duration, c *Cabrank) {
		t.Helper()
		c = startFault(t, worker, append(withMethodRule(t, rule), "--workers", "4", "--slots", "1")...)
		c.waitWorkers(4)
		conn := dialLang(t, c.Addr)
		var mu sync.Mutex
		var callers sync.WaitGroup
		for caller := range 2 { // half of the slots stay free
			callers.Go(func() {
				for n := range calls / 2 {
					began := time.Now()
					got := callIo(t.Context(), conn, fmt.Sprintf("%d-%d", caller, n), 5*time.Millisecond)
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
					if got.err != nil {
						t.Errorf("call %s: %v", got.id, got.err)
					}
				}
			})
		}
		callers.Wait()
		slices.Sort(took)
		return took, c
	}

	plain, c := run("")
	if n := c.metric("cabrank_hedges_total"); n != 0 {
		t.Errorf("%v hedges without a rule", n)
	}
	c.Stop()
	hedged, c := run("    hedge_after: 100ms\n")
	sent, won := c.metric("cabrank_hedges_total", "result", "sent"), c.metric("cabrank_hedges_total", "result", "won")
	t.Logf("without hedges %s; with %v, %v of them won, %s", spread(plain), sent, won, spread(hedged))
	if longest := plain[len(plain)-1]; longest < stall {
		t.Errorf("nobody stalled: the longest call took %v", longest)
	}
	if longest := hedged[len(hedged)-1]; longest > stall/2 { // a busy machine may take a while
		t.Errorf("with hedges the longest call took %v", longest)
	}
	if won == 0 || sent > calls/10 {
		t.Errorf("%v hedges won of %v, for %d calls", won, sent, calls)
	}
	c.Stop()
	runs := 0
	for id, times := range c.taken() {
		if runs += times; times > 2 {
			t.Errorf("call %s ran %d times", id, times)
		}
	}
	if runs > calls+int(sent) {
		t.Errorf("%d calls and %v hedges made %d runs", calls, sent, runs)
	}
}

// With every slot in use there are no hedges, however late calls are. A moment in
// which the callers are not as quick as the workers is no fault.
func TestNoHedgesAtFullLoad(t *testing.T) {
	c := startFault(t, faultWorker(t), append(withMethodRule(t, "    hedge_after: 5ms\n"), "--workers", "2", "--slots", "2")...)
	c.waitWorkers(2)
	load := startLoad(t, c.Addr, 24, shortWork)
	load.waitAnswered(t, "", 300)
	sent, noSlot := c.metric("cabrank_hedges_total", "result", "sent"), c.metric("cabrank_hedges_total", "result", "no_slot")
	if sent > 6 || noSlot < 200 {
		t.Errorf("%v hedges at full load; %v had no slot", sent, noSlot)
	}
	for _, o := range failures(load.stop()) {
		t.Errorf("call %s: %v", o.id, o.err)
	}
	c.Stop()
}

// With retries nobody notices that workers die: what they had is run once more by
// another one. Compare TestWorkerDiesUnderLoad.
func TestRetriesHideDeaths(t *testing.T) {
	const slots, deaths = 3, 3
	c := startFault(t, faultWorker(t), append(withMethodRule(t, "    retries: 3\n"), "--workers", "2", "--slots", strconv.Itoa(slots))...)
	c.waitWorkers(2)
	load := startLoad(t, c.Addr, 2*slots+2, shortWork)
	for death := range deaths {
		load.waitAnswered(t, "worker-1", 20)
		pids := c.readyPIDs("worker-1")
		c.kill(pids[len(pids)-1])
		c.wait(patience, "the return of worker-1", func() bool { return len(c.readyPIDs("worker-1")) == death+2 })
	}
	load.waitAnswered(t, "worker-1", 20)
	all := load.stop()
	for _, o := range failures(all) {
		t.Errorf("call %s: %v", o.id, o.err)
	}
	retries := c.metric("cabrank_retries_total", "reason", "worker_lost")
	if retries == 0 || retries > deaths*slots {
		t.Errorf("%v retries for %d deaths of workers with %d slots", retries, deaths, slots)
	}
	if got := c.metric("cabrank_calls_total"); got != float64(len(all)) {
		t.Errorf("the page counts %v calls, callers made %d", got, len(all))
	}
	c.Stop()
	for id, times := range c.taken() {
		if times > 2 {
			t.Errorf("call %s ran %d times", id, times)
		}
	}
}
