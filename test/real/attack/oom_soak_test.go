//go:build soak

package attack_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// A worker that takes all memory of the container is killed by the kernel, which the log
// and the metrics tell from a kill -9 by somebody.
func TestOutOfMemoryIsNamed(t *testing.T) {
	inContainer(t, containerMemory)
	once := filepath.Join(t.TempDir(), "once")
	worker := `if mkdir "$1"; then exec tail /dev/zero; else exec "$0" demo worker; fi`
	c := harness.StartCabrank(t, "--workers", "1", "--", "sh", "-c", worker, harness.CabrankBinary(t), once)
	c.WaitLog(harness.Patience, "worker ended")
	if ended := c.LogLines("worker ended")[0]; ended.Text("cause") != "oom" || !strings.Contains(ended.Text("how"), "out of memory") {
		t.Errorf("of a worker that took all memory the log says %v", ended)
	}
	c.WaitReady(harness.Patience)
	c.KillPID(c.ReadyPIDs("worker-1")[0])
	c.Wait(harness.Patience, "a second end", func() bool { return len(c.LogLines("worker ended")) == 2 })
	if ended := c.LogLines("worker ended")[1]; ended.Text("cause") != "signal" {
		t.Errorf("of one that somebody has killed it says %v", ended)
	}
	c.Stop()
}
