//go:build (real || soak) && linux

package operations_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// startWrapped starts cabrank behind a wrapper, with a control socket.
func startWrapped(t *testing.T, wrapper ...string) *harness.Controlled {
	t.Helper()
	c := harness.StartControlledBy(t, wrapper, "--workers", "1").AwaitReady(1)
	return c
}

// A process has another number in each process namespace, and none where it
// cannot be seen. Stop goes by the number that it has where stop runs.
func TestStopFromAnotherNamespace(t *testing.T) {
	inside := append([]string{"/usr/bin/env"}, harness.PIDNamespace(t)...)
	for name, from := range map[string][]string{"outside": nil, "a sibling": inside} {
		t.Run(name, func(t *testing.T) {
			c := startWrapped(t, inside...)
			c.Stopped(from...)
			c.WantExit(harness.Patience, 0)
			c.WaitNoneLeft(harness.Patience)
		})
	}
}

// After an upgrade stop waits for the process that has taken over.
func TestStopSeesTheSuccessor(t *testing.T) {
	c := startWrapped(t)
	c.Must("upgrade")
	c.Await("the successor alone", func(s *harness.OperatorStatus) bool { return s.PID != c.PID && c.Exited() })
	c.Stopped()
	if left := c.Family(); len(left) > 0 {
		t.Errorf("still there when stop has returned: %s", harness.Describe(left))
	}
}

// Who started cabrank need not have waited for its end.
func TestStopOfAZombie(t *testing.T) {
	c := startWrapped(t, "/bin/sh", "-c", `"$0" "$@" & exec sleep 1000`)
	c.Stopped()
	c.Kill()
	c.WaitNoneLeft(harness.Patience)
}
