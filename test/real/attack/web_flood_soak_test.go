//go:build soak

package attack_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Connections over HTTP/1 that are kept, each with requests by the hundred whose answers nobody
// reads: however these are answered, the calls of another caller take at most three times as
// long as in calm at the 99th percentile, none fails, and nothing is left. Who has which core is
// as in TestFloods.
func TestFloodOfCallsOverHTTP1(t *testing.T) {
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "flood\tanswered by\tcalm p50\tp50\tcalm p99\tp99\tratio\tsent\t")
	for _, f := range []struct{ name, flood, limit string }{
		{"health", "health, which cabrank answers", "0"},
		{"a rate limit", "calls of a worker", "500"},
		{"pages from elsewhere", "pages from elsewhere", "0"},
		{"calls of a worker", "calls of a worker", "0"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Setenv("CABRANK_LIMITS_CONNECTIONS", fmt.Sprint(webPlaces))
			t.Setenv("CABRANK_LIMITS_CALLS_PER_SECOND", f.limit)
			c := startPinned(t, "0")
			kib, threads, files := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines"), c.Metric("process_open_fds")
			var calm, loud steadyTimes
			var sent string
			for range turns {
				calm.add(callSteadily(t, c.Addr))
				attack := beside(t, "chrt", "--idle", "0", "taskset", "-c", "1", self(t), webFlooderRole, "-addr", c.Addr, "-flood", f.flood)
				attack.WaitLog(floodBound, floodBegun)
				loud.add(callSteadily(t, c.Addr))
				sent = fmt.Sprintf("%.0f connections, %d KiB", c.Metric("cabrank_connections"), harness.RSSKiB(t, c.PID)-kib)
				attack.Signal(syscall.SIGTERM)
				attack.ExitCode(floodBound)
				c.WaitMetric("cabrank_connections", 0)
			}
			if n := calm.Failed + loud.Failed; n > 0 {
				t.Errorf("%d calls failed, %d of them in calm", n, calm.Failed)
			}
			compareTo(t, rows, mostSlower, f.name+"\tcabrank", calm.Door, loud.Door, sent)
			compareTo(t, rows, mostSlower, f.name+"\ta worker", calm.Worker, loud.Worker, sent)
			testkit.Eventually(t, harness.Patience, "files and goroutines to be those of before", func() bool {
				return c.Metric("cabrank_connections") == 0 && c.Metric("process_open_fds") <= files+5 && c.Metric("go_goroutines") <= threads+5
			})
			c.Stop()
		})
	}
	rows.Flush()
	t.Logf("\n%s", table.String())
}
