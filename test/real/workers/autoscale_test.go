//go:build real || soak

package workers_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Workers come with a step of the load before a call fails, and a load that stays
// the same keeps them. That they go again takes five minutes: the soak waits.
func TestWorkersFollowTheLoad(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t, "-boot", "300ms"), "--workers", "1-4", "--slots", "2")
	if out := c.Must("scale", "1"); out == "" {
		t.Error("cabrank scale 1 said nothing")
	}
	offer(t, c.Addr, 1, phase{12, 3 * time.Second}) // more than one worker needs, held by hand
	if s := c.Status(); s.Wanted != 1 {
		t.Errorf("%d workers after scale 1", s.Wanted)
	}
	c.Must("scale", "auto")
	// 2.2 slots are busy: 2.2 + 1.5 sqrt(2.2) of two per worker are wanted.
	load := offer(t, c.Addr, 2, phase{2, 2 * time.Second}, phase{44, 6 * time.Second})
	if len(load.failed) > 0 {
		t.Errorf("calls failed: %v", load.failed)
	}
	s := c.Status()
	if s.Wanted < 3 || s.Ready < 3 {
		t.Errorf("after the step %d workers are wanted and %d ready, want 3 or 4", s.Wanted, s.Ready)
	}
	if c.Metric("cabrank_workers_wanted") != float64(s.Wanted) || c.Metric("cabrank_scale_decisions_total") == 0 {
		t.Errorf("the metrics do not tell: %s", c.MetricsText())
	}
	heads := countHeads(c.Cabrank, c.Op)
	load = offer(t, c.Addr, 3, phase{44, 8 * time.Second})
	heads.stop()
	if len(load.failed) > 0 {
		t.Errorf("calls failed: %v", load.failed)
	}
	if now := c.Status(); now.Wanted < s.Wanted || heads.changes > 1 {
		t.Errorf("from %d to %d workers in %d changes while the load stayed the same", s.Wanted, now.Wanted, heads.changes)
	}
	c.Stop()
}

// After an upgrade (R20) the load is what it was, and so is the number of workers.
func TestUpgradeKeepsTheNumberOfWorkers(t *testing.T) {
	m := harness.StartManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "1-4", "--"}, harness.FaultWorker(t))...)
	for _, n := range []string{"3", "auto"} {
		testkit.Must(t, m.Control.Run(harness.Patience, "scale", n))
	}
	m.SignalTo(m.Main, syscall.SIGUSR2)
	m.WaitLog(harness.Patience, "took over")
	m.Main = m.Successor()
	if err := m.Control.Await(harness.Patience, "three workers", func(s *harness.OperatorStatus) bool { return s.PID == m.Main && s.Wanted == 3 && s.Ready == 3 }); err != nil {
		t.Error(err)
	}
}
