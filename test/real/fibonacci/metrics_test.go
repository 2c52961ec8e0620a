//go:build (real || soak) && linux

package fibonacci_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The pages of real workers are one page, whose counters are those of all calls: through
// rolls none is lost, and a worker that is killed takes nothing back that was shown.
func TestMergedMetrics(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "control")
	env := []string{"PYTHONDONTWRITEBYTECODE=1", "METRICS_INTERVAL=200ms", "CABRANK_CONTROL=" + socket}
	c := harness.StartCabrankEnv(t, env, "--workers", "2", "--slots", "4", "--min-ready", "2", "--", python(t), "examples/fibonacci/"+flavours()[0].server)
	c.WaitReady(harness.LangBound)
	operator := harness.NewOperator(t, socket)
	front := startFront(t, flavours()[0].front, c.Addr, "GRPC_SERVER_SVC_TYPE=relay", "WORKERS=4")
	call := func() {
		t.Helper()
		get(t, front.url+"/fibonacci/random?iterations=100&output=false&fibo_start=10&fibo_end=10")
	}
	most := 0.0
	await := func(calls float64) {
		t.Helper()
		testkit.Eventually(t, harness.Patience, fmt.Sprintf("%v calls on the page", calls), func() bool {
			now := c.Metric("grpc_requests_total", "method", "Fibonacci")
			if now < most {
				t.Fatalf("the counter has fallen from %v to %v", most, now)
			}
			most = now
			return now == calls
		})
	}
	call()
	await(100)
	if n := len(c.Samples()["process_cpu_seconds_total"]); n != 3 {
		t.Errorf("process_cpu_seconds_total has %d samples, want cabrank's own and those of 2 workers", n)
	}
	for calls := range 3 {
		call() // and at once its processes are replaced
		if err := operator.Run(harness.LangBound, "restart"); err != nil {
			t.Fatal(err)
		}
		await(float64(200 + 100*calls))
	}
	s, err := operator.Status()
	if err != nil {
		t.Fatal(err)
	}
	c.SignalTo(s.Workers[0].PID, syscall.SIGKILL)
	c.WaitMetric("cabrank_worker_restarts_total", 1)
	c.WaitReady(harness.LangBound)
	await(400)
	call()
	await(500)
	if page := openMetrics(t, c); !strings.HasSuffix(page, "# EOF\n") || !strings.Contains(page, "# TYPE grpc_requests counter") {
		t.Errorf("as OpenMetrics the page is\n%s", page)
	}
	c.Stop()
}

// openMetrics is the page as Prometheus asks for it.
func openMetrics(t *testing.T, c *harness.Cabrank) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+c.MetricsAddr+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	defer http.DefaultClient.CloseIdleConnections()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
