//go:build soak

package workers_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// R6: workers with one thread, busy with calls that take longer than their
// health checks and than hang_timeout, are busy and not sick.
func TestSaturationIsNotSickness(t *testing.T) {
	args := []string{"--workers", "2", "--slots", "1", "--min-ready", "2", "--transport", "unix", "--"}
	// With 1 s a machine that runs other things, too, has workers stand still for long enough.
	env := append(impatient(t), "CABRANK_HANG_TIMEOUT=2s")
	c := harness.StartCabrankEnv(t, env, append(args, mixedWorkers(t)...)...)
	c.WaitReady(harness.LangBound)
	saturate(t, c, 4, 2500*time.Millisecond, 9*time.Second).wantNobodySick(t, c)
	c.Stop()
}
