//go:build (real || soak) && linux

package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that left the group and holds the pipes delays neither the restart
// nor Stop.
func TestEscapedProcessHoldsNothingUp(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Command = shell(`setsid sh -c 'echo escaped; exec sleep 1000' & exec "$0" test-worker serve`)
	})
	escapes := func(n int) {
		h.eventually("an escape", func() bool { return strings.Count(h.logs.String(), "worker-1 | escaped\n") == n })
	}
	h.waitReady(1)
	escapes(1)
	pid := h.first().PID
	h.signal(unix.SIGKILL)
	h.waitProcess(pid)
	escapes(2)
	h.stopsWithin(context.Background(), h.options.StopTimeout+7*time.Second)
	// They are still there: it was not they who were waited for. Those that became ours
	// are no longer reaped by the supervisor.
	escaped := marked(h.mark)
	for _, pid := range escaped {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if len(escaped) != 2 {
		t.Errorf("processes %v have escaped, want two", escaped)
	}
	h.eventually("the escaped to end", func() bool {
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		return errors.Is(err, unix.ECHILD) && len(marked(h.mark)) == 0
	})
}
