//go:build (real || soak) && linux

package workers_test

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// R19: where /proc shows processes only, as with systemd's ProcSubset=pid, or
// nothing at all, healthy workers serve, are replaced and end like elsewhere. Where
// nobody can tell whose a listener is, one line of the log says so.
func TestHiddenProc(t *testing.T) {
	for name, test := range map[string]struct {
		mount string
		blind int
	}{
		"processes only": {"mount -t proc -o subset=pid proc /proc", 0},
		"nothing":        {"mount -t tmpfs none /proc", 1},
	} {
		for _, transport := range []string{"tcp", "unix"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				alone := slices.Concat(harness.PIDNamespace(t), []string{"sh", "-c", test.mount + ` && exec "$0" "$@"`})
				if out, err := exec.Command(alone[0], append(alone[1:], "true")...).CombinedOutput(); err != nil {
					t.Skipf("this machine mounts no such /proc: %s", out)
				}
				c := harness.StartControlledBy(t, alone, "--transport", transport, "--workers", "2", "--boot-timeout", "30s")
				c.AwaitReady(2)
				harness.CallIo(t.Context(), harness.Dial(t, c.Listening("listening")), "1", 0).WantOK(t)
				c.Must("restart")
				if n := len(c.LogLines("worker ended")); n > 0 {
					t.Errorf("%d workers have ended", n)
				}
				c.SignalTo(harness.ChildOf(t, c.PID), syscall.SIGTERM)
				c.WantExit(harness.StopBound, 0)
				c.WaitNoneLeft(harness.Patience)
				// Looking follows readiness: at the end all is said.
				if n := len(c.LogLines("cannot check which process owns a port; trusting whatever answers at the worker's address")); n != test.blind {
					t.Errorf("%d lines about listeners that cannot be checked, want %d", n, test.blind)
				}
			})
		}
	}
}
