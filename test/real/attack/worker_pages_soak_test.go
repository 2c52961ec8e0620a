//go:build soak

package attack_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// metricsOffset is how far the port of a worker's page is from its own.
const metricsOffset = 100

// hostilePages are metrics pages of workers that take as much memory as they can.
func hostilePages() map[string]http.HandlerFunc {
	var n atomic.Int64
	return map[string]http.HandlerFunc{
		"labels of 8 KB, new with each page": func(w http.ResponseWriter, _ *http.Request) {
			page, label := n.Add(1), strings.Repeat("y", 7900)
			_, _ = io.WriteString(w, "# TYPE c_total counter\n")
			for line := range 2000 {
				_, _ = fmt.Fprintf(w, "c_total{x=\"%s%d-%d\"} 1\n", label, page, line)
			}
		},
		"a gigabyte": func(w http.ResponseWriter, _ *http.Request) {
			lines := strings.Repeat("a_total{x=\"1\"} 1\n", 1<<16)
			for range 1 << 10 {
				if _, err := io.WriteString(w, lines); err != nil {
					return
				}
			}
		},
	}
}

// In a container of 100 MiB cabrank outlives the metrics pages of its workers, and
// callers notice nothing.
func TestWorkersPagesInAContainer(t *testing.T) {
	for name, page := range hostilePages() {
		t.Run(name, func(t *testing.T) { workersPagesInAContainer(t, page) })
	}
}

func workersPagesInAContainer(t *testing.T, page http.HandlerFunc) {
	t.Helper()
	group := inContainer(t, containerMemory)
	ports := testkit.FreePorts(t, 2*metricsOffset)
	c := harness.StartCabrankEnv(t, []string{"METRICS_INTERVAL=500ms"}, "--start-port", strconv.Itoa(ports), "--workers", "3", "--slots", "10", "--transport", "unix",
		"--", harness.CabrankBinary(t), "demo", "worker", "--work", "2ms")
	c.WaitReady(harness.Patience)
	for n := range 3 {
		servePage(t, strconv.Itoa(ports+n+metricsOffset), page)
	}
	testkit.Eventually(t, 2*time.Minute, "30 pages were asked for", func() bool {
		if c.Exited() {
			t.Fatalf("cabrank has ended: %v; at most %d MiB were used", c.Cmd.ProcessState, mostUsed(t, group))
		}
		return c.Metric("cabrank_worker_pages_total") >= 30
	})
	wantAnswered(t, demopb.NewGreeterClient(harness.Dial(t, c.Addr)), time.Second)
	t.Logf("at most %d MiB used", mostUsed(t, group))
	testkit.Want(t, len(c.LogLines("the metrics page of a worker cannot be taken as it is")) != 0,
		"the log says nothing of what is left out")
}

// servePage answers at the port that a worker was given for its page.
func servePage(t *testing.T, port string, page http.HandlerFunc) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	testkit.Must(t, err)
	server := &http.Server{Handler: page, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
}
