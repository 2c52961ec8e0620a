//go:build real || soak

package attack_test

import (
	"context"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// steadyPause is between two calls of a steady caller, so that it does not take
// the processor from what is tested.
const steadyPause = 5 * time.Millisecond

// 10,000 idle connections cost a bounded amount of memory each and hold no
// buffer, another caller never notices them, and nothing is left of them.
func TestIdleConnections(t *testing.T) {
	c := harness.StartCabrank(t, "--workers", "1", "--slots", "20", "--",
		harness.CabrankBinary(t), "demo", "worker", "--work", "1ms")
	c.WaitReady(harness.Patience)
	good := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
	testkit.Must(t, greet(t, good))
	kib, threads := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines")
	buffered, files := c.Metric("cabrank_buffered_bytes"), c.Metric("process_open_fds")

	caller := startSteady(t, good)
	idle := harness.GatherCrowd(t, c)
	n := len(idle.Conns)
	caller.WaitMore(100)
	testkit.Eventually(t, harness.Patience, "the crowd's buffers to come back", func() bool {
		return c.Metric("cabrank_buffered_bytes") <= buffered
	})
	each := float64(harness.RSSKiB(t, c.PID)-kib) / float64(n)
	t.Logf("%d connections, %.1f KiB each", n, each)
	if each > harness.MostIdle {
		t.Errorf("%.1f KiB for each connection, want at most %d", each, harness.MostIdle)
	}

	idle.Leave()
	caller.WaitMore(100)
	caller.WantNoFailure()
	testkit.Eventually(t, harness.Patience, "buffers, files and goroutines to be those of before", func() bool {
		return c.Metric("cabrank_buffered_bytes") <= buffered && c.Metric("process_open_fds") <= files+5 &&
			c.Metric("go_goroutines") <= threads+5
	})
	served, all := c.Metric("cabrank_calls_total", "code", "OK"), c.Metric("cabrank_calls_total")
	if served != all || served < float64(n/2) {
		t.Errorf("%v of %v calls were served, want all, and one for every second connection of %d", served, all, n)
	}
	if ended := c.Metric("cabrank_connections_ended_total"); ended != 0 {
		t.Errorf("cabrank ended %v connections itself", ended)
	}
	c.Stop()
	if n < harness.CrowdSize {
		t.Skipf("passed with %d connections only: the limit on open files does not allow %d", n, harness.CrowdSize)
	}
}

// startSteady starts a caller that makes one call after the other.
func startSteady(t *testing.T, greeter demopb.GreeterClient) *harness.Loop {
	t.Helper()
	return harness.StartLoop(t, 1, func(context.Context) error {
		<-time.After(steadyPause)
		return greet(t, greeter)
	})
}
