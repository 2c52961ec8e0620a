//go:build soak

package attack_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
)

// While four sockets send as much as a core can, calls over gRPC take little longer than in
// calm, as beside floods over HTTP/2 (TestFloods).
func TestSocketFloods(t *testing.T) {
	c := startPinned(t, "0", "--socket-path", "/ws")
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "flood\tanswered by\tcalm p50\tp50\tcalm p99\tp99\tratio\tsent\t")
	for _, f := range socketFloods() {
		t.Run(f.name, func(t *testing.T) {
			var calm, loud steadyTimes
			var sent string
			for range floodTurns {
				calm.add(callSteadily(t, c.Addr))
				attack := beside(t, "chrt", "--idle", "0", self(t), socketFlooderRole, "-addr", c.Addr, "-flood", f.name)
				attack.WaitLog(floodBound, floodBegun)
				loud.add(callSteadily(t, c.Addr))
				attack.Signal(syscall.SIGTERM)
				attack.ExitCode(floodBound)
				sent = strings.TrimSpace(attack.Output())
				c.WaitMetric("cabrank_connections", 0)
			}
			if n := calm.Failed + loud.Failed; n > 0 {
				t.Errorf("%d calls failed, %d of them in calm", n, calm.Failed)
			}
			compareTo(t, rows, mostFlooded, f.name+"\tcabrank", calm.Door, loud.Door, sent)
			compareTo(t, rows, mostFlooded, f.name+"\ta worker", calm.Worker, loud.Worker, sent)
		})
	}
	rows.Flush()
	t.Logf("\n%s", table.String())
	c.Stop()
}
