//go:build soak

package chaos_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Workers are killed every five seconds under steady load. The only calls that
// fail are those that a killed worker had taken; memory does not grow; latency
// is printed. Each kill loses at most the calls in flight on that worker.
func TestSoakKilledWorkers(t *testing.T) {
	const workers, slots, callers = 3, 4, 10
	c := harness.StartCabrank(t, "--workers", strconv.Itoa(workers), "--slots", strconv.Itoa(slots), "--transport", "unix",
		"--", harness.CabrankBinary(t), "demo", "worker", "--work", "2ms")
	c.WaitReady(harness.Patience)
	ctx, cancel := context.WithTimeout(t.Context(), harness.SoakTime(t))
	defer cancel()
	tally := &harness.SoakTally{Failures: make(map[string]int)}
	var running sync.WaitGroup
	for range callers {
		running.Go(func() { harness.SoakCaller(ctx, t, c.Addr, tally) })
	}
	before := harness.RSSKiB(t, c.PID)
	kills := soakKiller(ctx, t, c, workers)
	running.Wait()
	after := harness.RSSKiB(t, c.PID)

	slices.Sort(tally.Took)
	lost := tally.Failures["cabrank: worker lost"]
	t.Logf("%d calls, %d kills, %d lost, p50 %v, p99 %v, max %v; memory %d KiB, then %d KiB", len(tally.Took), kills, lost,
		tally.Took[len(tally.Took)/2], tally.Took[len(tally.Took)*99/100], tally.Took[len(tally.Took)-1], before, after)
	delete(tally.Failures, "cabrank: worker lost")
	if len(tally.Failures) > 0 {
		t.Errorf("calls failed otherwise: %v", tally.Failures)
	}
	if lost > kills*slots {
		t.Errorf("%d calls lost by %d kills of workers with %d slots", lost, kills, slots)
	}
	if after > before+16<<10 {
		t.Errorf("memory grew from %d to %d KiB", before, after)
	}
	c.Stop()
}

// soakKiller kills the workers in turn, each when all are back: one that always
// died soon would be restarted later and later, and a dead one cannot be killed.
func soakKiller(ctx context.Context, t *testing.T, c *harness.Cabrank, workers int) (kills int) {
	t.Helper()
	every := time.NewTicker(5 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return kills
		case <-every.C:
		}
		testkit.Eventually(t, 30*time.Second, "the return of the killed worker", func() bool {
			return ctx.Err() != nil || c.Metric("cabrank_worker_state", "state", "ready") == float64(workers)
		})
		if ctx.Err() != nil {
			return kills
		}
		victim := nextVictim(c.LogLines("worker ready"))
		pid, err := strconv.Atoi(victim.Text("pid"))
		if err != nil {
			t.Errorf("pid of %v: %v", victim, err)
			return kills
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("kill %d: %v", pid, err)
		}
		kills++
	}
}

// nextVictim returns the line of the worker that has been ready for longest,
// by the last readiness of each.
func nextVictim(ready []harness.LogLine) (victim harness.LogLine) {
	seen := make(map[string]bool)
	for _, line := range slices.Backward(ready) {
		if name := line.Text("worker"); !seen[name] {
			seen[name], victim = true, line
		}
	}
	return victim
}

// R14 at length: 500 cancels a second for a minute beside steady callers on a
// real Node worker. SOAK_TIME does not change it.
func TestSoakCancels(t *testing.T) { harness.CancelStorm(t, time.Minute) }
