//go:build (real || soak) && linux

package operations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// With few files allowed, callers who connect and callers of the pages who hold on
// take none of those that the workers need: one that dies is replaced, none is said
// to take no calls, and commands are answered.
func TestDescriptorsForSupervision(t *testing.T) {
	port := testkit.FreePorts(t, 120)
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", port+n) }
	c := harness.StartControlledBy(t, []string{"/bin/sh", "-c", `ulimit -n 64; exec "$0" "$@"`}, "--listen", at(0), "--probes", at(1), "--metrics", at(2),
		"--transport", "tcp", "--start-port", fmt.Sprint(port+10), "--workers", "2")
	c.Addr, c.ProbesAddr = at(0), at(1)
	c.WaitReady(harness.Patience)
	c.AwaitReady(2)
	conn := harness.Dial(t, c.Addr) // an honest caller, who was first
	harness.CallIo(t.Context(), conn, "1", 0).WantOK(t)
	for _, addr := range []string{c.ProbesAddr, at(2), c.Addr} {
		for range 100 {
			held := testkit.Dial(t, addr)
			if _, err := held.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
				continue // it was refused already
			}
		}
	}
	for range 3 {
		c.KillAndAwait("worker-1", 2)
	}
	harness.CallIo(t.Context(), conn, "2", 0).WantOK(t)
	c.Must("restart")
	c.Stop()
	for line := range strings.Lines(c.Log()) {
		// A descriptor is free when the one who reads from it has seen its end: a door
		// that is quicker pauses once.
		paused := strings.Contains(line, "cannot accept a connection") && strings.Contains(line, `"retry_in":"5ms"`)
		if strings.Contains(line, "worker takes no calls") || strings.Contains(line, "too many open files") && !paused {
			t.Errorf("the log has %s", line)
		}
	}
	testkit.Want(t, strings.Contains(c.Log(), "few connections can be taken"), "the log does not tell that there are few files")
}
