//go:build soak

package attack_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Connections over HTTP/1 that are kept, each with requests by the hundred whose answers nobody
// reads: however these are answered, the calls of another caller take at most three times as
// long as in calm at the 99th percentile, none fails, and nothing is left. Who has which core is
// as in TestFloods.
func TestFloodOfCallsOverHTTP1(t *testing.T) {
	rows, show := floodTable(t)
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
			floodBeside{
				c: c, rows: rows, turns: turns, most: mostSlower,
				calls: func() steadyTimes { return callSteadily(t, c.Addr) },
				attack: func() func() string {
					attack := beside(t, "chrt", "--idle", "0", "taskset", "-c", "1", self(t), webFlooderRole, "-addr", c.Addr, "-flood", f.flood)
					attack.WaitLog(floodBound, floodBegun)
					return func() string {
						sent := fmt.Sprintf("%.0f connections, %d KiB", c.Metric("cabrank_connections"), harness.RSSKiB(t, c.PID)-kib)
						attack.Signal(syscall.SIGTERM)
						attack.ExitCode(floodBound)
						return sent
					}
				},
			}.run(t, f.name)
			testkit.Eventually(t, harness.Patience, "files and goroutines to be those of before", func() bool {
				return c.Metric("cabrank_connections") == 0 && c.Metric("process_open_fds") <= files+5 && c.Metric("go_goroutines") <= threads+5
			})
			c.Stop()
		})
	}
	show()
}
