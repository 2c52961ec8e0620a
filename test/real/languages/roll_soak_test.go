//go:build soak

package languages_test

import (
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// 200 rolls of workers that start fast, under load: memory, descriptors and
// goroutines are what they were after the first 20, and no call fails.
func TestSoakRolls(t *testing.T) {
	const rolls, warm, workers = 200, 20, 2
	socket := filepath.Join(harness.ShortTempDir(t), "control.sock")
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", "4", "--control", socket)
	o := harness.NewOperator(t, socket)
	c.WaitWorkers(workers)
	roll := func(times int) harness.Footprint {
		load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
		for range times {
			testkit.Must(t, o.Run(harness.ChangeLimit, "restart"))
		}
		all := load.Stop()
		if failed := harness.Failures(all); len(failed) > 0 {
			t.Errorf("%d of %d calls failed, the first with %v", len(failed), len(all), failed[0].Err)
		}
		return harness.FootprintOf(c, c.PID)
	}
	before := roll(warm)
	after := roll(rolls - warm)
	t.Logf("after %d rolls %+v, after %d %+v", warm, before, rolls, after)
	if err := before.GrownBy(after); err != nil {
		t.Error(err)
	}
	if after.Kibibytes > before.Kibibytes+8<<10 {
		t.Errorf("memory grew from %d to %d KiB", before.Kibibytes, after.Kibibytes)
	}
	c.Stop()
}
