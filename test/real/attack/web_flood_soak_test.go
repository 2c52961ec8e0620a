//go:build soak

package attack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	webPlaces = 8000 // a quarter of which may speak HTTP/1
	webConns  = webPlaces / 2
	webDeep   = 500 // requests of each, one behind the other
	webTurn   = 2 * time.Second
)

// greeting is a request of gRPC-Web to a method, with one empty message and fields of its own.
func greeting(method, fields string) string {
	return "POST " + method + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web\r\n" + fields + "Content-Length: 5\r\n\r\n\x00\x00\x00\x00\x00"
}

// Connections over HTTP/1 that are kept, each with requests by the hundred whose answers nobody
// reads: however these are answered, the calls of another caller take at most three times as
// long as in calm at the 99th percentile, none fails, and nothing is left.
func TestFloodOfCallsOverHTTP1(t *testing.T) {
	const hello = "/cabrank.demo.v1.Greeter/SayHello"
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "flood\tanswered by\tcalm p50\tp50\tcalm p99\tp99\tratio\tsent\t")
	for _, f := range []struct {
		name, request string
		env           []string
	}{
		{"health, which cabrank answers", greeting("/grpc.health.v1.Health/Check", ""), nil},
		{"a rate limit", greeting(hello, ""), []string{"CABRANK_LIMITS_CALLS_PER_SECOND=150"}},
		{"pages from elsewhere", strings.Replace(greeting(hello, "Origin: https://evil.example\r\n"), "5\r\n\r\n\x00\x00\x00\x00\x00", "0\r\n\r\n", 1), nil},
		{"calls of a worker", greeting(hello, ""), nil},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := harness.StartCabrankEnv(t, append(f.env, fmt.Sprintf("CABRANK_LIMITS_CONNECTIONS=%d", webPlaces)), "--workers", "1", "--slots", "20", "--",
				harness.CabrankBinary(t), "demo", "worker", "--work", "1ms")
			c.WaitReady(harness.Patience)
			kib, threads, files := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines"), c.Metric("process_open_fds")
			var calm, loud steadyTimes
			var sent string
			for range turns {
				calm.add(webSteady(t, c.Addr))
				end := attackWeb(t, c.Addr, strings.Repeat(f.request, webDeep))
				loud.add(webSteady(t, c.Addr))
				sent = fmt.Sprintf("%.0f connections, %d KiB", c.Metric("cabrank_connections"), harness.RSSKiB(t, c.PID)-kib)
				end()
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

// webSteady calls for a turn.
func webSteady(t *testing.T, addr string) (times steadyTimes) {
	t.Helper()
	p := harness.StartProcess(t, nil, self(t), steadyRole, "-addr", addr, "-for", webTurn.String())
	p.ExitCode(harness.Patience)
	if err := json.Unmarshal([]byte(p.Output()), &times); err != nil {
		t.Fatal(err)
	}
	return times
}

// attackWeb has attackers of another address send text, and ask for nothing back. Who is ended
// stays away. It returns once all have connected.
func attackWeb(t *testing.T, addr, text string) (end func()) {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: harness.Patience}
	var conns []net.Conn
	var sending sync.WaitGroup
	end = sync.OnceFunc(func() {
		for _, conn := range conns {
			conn.Close()
		}
		sending.Wait()
	})
	t.Cleanup(end)
	for range webConns {
		conn, err := from.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		sending.Go(func() { _, _ = io.WriteString(conn, text) }) // ends with its connection
	}
	return end
}
