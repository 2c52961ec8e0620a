//go:build real || soak

package attack_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// guestBytes is what a connection over HTTP/1 may cost, KiB: net/http has two buffers
// and a goroutine for each.
const guestBytes = 32

// Floods of connections over HTTP/1, with heads that do not end, or with requests by
// the hundred whose answers nobody reads: they get a quarter of the places, each with
// a bounded amount of memory; a caller beside them gets every answer, and nothing is
// left of them.
func TestFloodOfHTTP1(t *testing.T) {
	const places, most = 8000, 2000
	for name, opening := range map[string]string{
		"heads that do not end": "GET / HTTP/1.1\r\nHost: a\r\nX: ",
		"one after the other":   "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"never read":            strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 500),
	} {
		t.Run(name, func(t *testing.T) {
			c := harness.StartCabrankEnv(t, []string{"CABRANK_LIMITS_CONNECTIONS=8000"}, "--workers", "1", "--slots", "20", "--",
				harness.CabrankBinary(t), "demo", "worker", "--work", "1ms")
			c.WaitReady(harness.Patience)
			good := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
			testkit.Must(t, greet(t, good))
			kib, threads, files := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines"), c.Metric("process_open_fds")
			caller := startSteady(t, good)
			conns := floodHTTP1(t, c.Addr, opening, places/2)
			caller.WaitMore(50)
			grown := harness.RSSKiB(t, c.PID) - kib
			there := c.Metric("cabrank_connections")
			t.Logf("%d came, %v are there, %.1f KiB each", len(conns), there, float64(grown)/there)
			if there > most+1 { // and the good one
				t.Errorf("%v connections, want at most %d", there, most)
			}
			testkit.Want(t, grown <= most*guestBytes, "it took %d KiB", grown)
			caller.WaitMore(50)
			caller.WantNoFailure()
			for _, conn := range conns {
				conn.Close()
			}
			testkit.Eventually(t, harness.Patience, "files and goroutines to be those of before", func() bool {
				return c.Metric("cabrank_connections") == 1 && c.Metric("process_open_fds") <= files+5 && c.Metric("go_goroutines") <= threads+5
			})
		})
	}
}

// floodHTTP1 makes so many connections, and says the same on each. Those that have to go
// again are none of its business.
func floodHTTP1(t *testing.T, addr, opening string, n int) (conns []net.Conn) {
	t.Helper()
	t.Cleanup(func() {
		for _, conn := range conns {
			conn.Close()
		}
	})
	for range n {
		conn, err := net.DialTimeout("tcp", addr, harness.Patience)
		testkit.Must(t, err)
		conns = append(conns, conn)
		_ = conn.SetWriteDeadline(time.Now().Add(harness.Patience))
		_, _ = io.WriteString(conn, opening)
	}
	return conns
}
