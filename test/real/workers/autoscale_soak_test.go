//go:build soak

package workers_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The step of the load: 1x keeps four workers of two slots busy.
const (
	stepSlots = 2
	stepBase  = 4 * stepSlots / 0.05 // calls per second of 50 ms each
	stepLow   = 0.3 * stepBase
	stepHigh  = 2.0 * stepBase
	stepBoot  = time.Second
)

// The load rises from 0.3x to 2x within an instant. The best fixed number is the
// smallest with which 99 % of the calls of 2x wait for less than a run time.
func TestSoakStepOfTheLoad(t *testing.T) {
	best := 0
	for n := 9; n <= 14 && best == 0; n++ {
		c, _ := startScaled(t, strconv.Itoa(n))
		load := offer(t, c.Addr, 4, phase{stepHigh, 20 * time.Second})
		t.Logf("fixed at %d: 2x alone waits p50 %v, p99 %v, max %v", n, load.wait(0.5), load.wait(0.99), load.wait(1))
		if load.wait(0.99) <= scaleService || n == 14 {
			best = n
		}
		c.Stop()
	}
	steps := []phase{{stepLow, time.Minute}, {stepHigh, time.Minute}, {stepLow, time.Minute}}
	c, o := startScaled(t, strconv.Itoa(best))
	fixed, fixedHeads := stepTrial(t, c, o, steps)
	c.Stop()
	c, o = startScaled(t, "1-16")
	auto, autoHeads := stepTrial(t, c, o, steps)
	t.Logf("fixed at %d: waits p50 %v, p99 %v, max %v; %.0f worker-seconds", best, fixed.wait(0.5), fixed.wait(0.99), fixed.wait(1), fixedHeads.seconds)
	t.Logf("auto, up to %d: waits p50 %v, p99 %v, max %v; %.0f worker-seconds, %.2f of fixed; %d changes", autoHeads.most,
		auto.wait(0.5), auto.wait(0.99), auto.wait(1), autoHeads.seconds, autoHeads.seconds/fixedHeads.seconds, autoHeads.changes)
	if limit := stepBoot + 2*time.Second; auto.wait(1) > limit {
		t.Errorf("a call waited for %v, at most %v", auto.wait(1), limit)
	}
	testkit.Want(t, autoHeads.seconds <= fixedHeads.seconds,
		"%.0f worker-seconds, more than %.0f of a fixed number", autoHeads.seconds, fixedHeads.seconds)
	goAgain(t, c, o)
	c.Stop()
}

// goAgain waits until the workers of the step have gone, one at a time, with calls
// all the while.
func goAgain(t *testing.T, c *harness.Cabrank, o *harness.Operator) {
	t.Helper()
	load := offer(t, c.Addr, 5, phase{stepLow, 7 * time.Minute})
	testkit.Want(t, len(load.failed) == 0, "calls failed while workers went: %v", load.failed)
	if err := o.Await(time.Minute, "workers of the step have gone", func(s *harness.OperatorStatus) bool { return s.Wanted <= 6 && len(s.Workers) <= 6 }); err != nil {
		t.Error(err)
	}
}

// startScaled starts cabrank with this number of workers, and waits until as many
// are ready as it begins with.
func startScaled(t *testing.T, workers string, flags ...string) (*harness.Cabrank, *harness.Operator) {
	t.Helper()
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	flags = append(flags, "--workers", workers, "--slots", strconv.Itoa(stepSlots), "--control", socket)
	c := harness.StartFault(t, harness.FaultWorker(t, "-boot", stepBoot.String()), flags...)
	o := harness.NewOperator(t, socket)
	testkit.Must(t, o.Await(harness.Patience, "all workers are ready", func(s *harness.OperatorStatus) bool { return s.Ready == s.Wanted && s.Wanted > 0 }))
	return c, o
}

func stepTrial(t *testing.T, c *harness.Cabrank, o *harness.Operator, steps []phase) (*scaleLoad, *headcount) {
	t.Helper()
	heads := countHeads(c, o)
	load := offer(t, c.Addr, 4, slices.Clone(steps)...)
	heads.stop()
	testkit.Want(t, len(load.failed) == 0, "calls failed: %v", load.failed)
	return load, heads
}
