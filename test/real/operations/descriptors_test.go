//go:build (real || soak) && linux

package operations_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// With few files allowed, callers who connect and callers of the pages who hold on
// take none of those that the workers need: one that dies is replaced, none is said
// to take no calls, and commands are answered.
func TestDescriptorsForSupervision(t *testing.T) {
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	port := testkit.FreePorts(t, 120)
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", port+n) }
	args := slices.Concat([]string{"-c", `ulimit -n 64; exec "$0" "$@"`, harness.CabrankBinary(t), "run", "--listen", at(0), "--probes", at(1),
		"--metrics", at(2), "--control", socket, "--start-port", fmt.Sprint(port + 10), "--workers", "2", "--"}, harness.FaultWorker(t))
	p := harness.StartProcess(t, nil, "/bin/sh", args...)
	c := &harness.Controlled{Cabrank: &harness.Cabrank{Process: p, Addr: at(0), ProbesAddr: at(1), Ended: true}, Socket: socket, Op: harness.NewOperator(t, socket)}
	c.WaitReady(harness.Patience)
	c.AwaitReady(2)
	conn := harness.Dial(t, c.Addr) // an honest caller, who was first
	if got := harness.CallIo(t.Context(), conn, "1", 0); got.Err != nil {
		t.Fatal(got.Err)
	}
	for _, addr := range []string{c.ProbesAddr, at(2), c.Addr} {
		for range 100 {
			held, err := net.Dial("tcp", addr)
			testkit.Must(t, err)
			t.Cleanup(func() { held.Close() })
			if _, err := held.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
				continue // it was refused already
			}
		}
	}
	for range 3 {
		c.KillAndAwait("worker-1", 2)
	}
	if got := harness.CallIo(t.Context(), conn, "2", 0); got.Err != nil {
		t.Error(got.Err)
	}
	if err := c.Op.Run(harness.StopBound, "restart"); err != nil {
		t.Error(err)
	}
	c.StopInTime()
	for line := range strings.Lines(p.Log()) {
		// A descriptor is free when the one who reads from it has seen its end: a door
		// that is quicker pauses once.
		paused := strings.Contains(line, "cannot accept a connection") && strings.Contains(line, `"retry_in":"5ms"`)
		if strings.Contains(line, "worker takes no calls") || strings.Contains(line, "too many open files") && !paused {
			t.Errorf("the log has %s", line)
		}
	}
	if !strings.Contains(p.Log(), "few connections can be taken") {
		t.Error("the log does not tell that there are few files")
	}
}
