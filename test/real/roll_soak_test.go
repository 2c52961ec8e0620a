//go:build soak

package real_test

import (
	"path/filepath"
	"testing"
)

// 200 rolls of workers that start fast, under load: memory, descriptors and
// goroutines are what they were after the first 20, and no call fails.
func TestSoakRolls(t *testing.T) {
	const rolls, warm, workers = 200, 20, 2
	socket := filepath.Join(shortTempDir(t), "control.sock")
	c := startFault(t, faultWorker(t), "--workers", "2", "--slots", "4", "--control", socket)
	o := newOperator(t, socket)
	c.waitWorkers(workers)
	roll := func(times int) footprint {
		load := startLoad(t, c.Addr, 4, shortWork)
		for range times {
			if err := o.run(changeLimit, "restart"); err != nil {
				t.Fatal(err)
			}
		}
		all := load.stop()
		if failed := failures(all); len(failed) > 0 {
			t.Errorf("%d of %d calls failed, the first with %v", len(failed), len(all), failed[0].err)
		}
		return footprintOf(c, c.PID)
	}
	before := roll(warm)
	after := roll(rolls - warm)
	t.Logf("after %d rolls %+v, after %d %+v", warm, before, rolls, after)
	if err := before.grownBy(after); err != nil {
		t.Error(err)
	}
	if after.kibibytes > before.kibibytes+8<<10 {
		t.Errorf("memory grew from %d to %d KiB", before.kibibytes, after.kibibytes)
	}
	c.Stop()
}
