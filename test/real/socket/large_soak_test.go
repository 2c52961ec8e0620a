//go:build soak

package socket_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// What calls over sockets have the process hold is within the budget of sockets, in
// whatever form it is held: messages that become 400 times as much JSON, arguments of calls
// that wait for a worker, answers that nobody reads. What is sent would take a gigabyte.
func TestLargeCallsAreBoundedSoak(t *testing.T) {
	const budgetKiB, socketKiB = 64 << 10, 256 // beside it a goroutine each, and what the relay holds of answers
	text := `{"items":[{"field01":"` + strings.Repeat("x", 1_000_000) + `"}]}`
	for name, tc := range map[string]struct {
		slots, method, args string
		sockets, calls      int
		waits               bool
	}{
		"more JSON than protobuf": {"10", "Items", "{}", 3, 1, false},
		"calls that wait":         {"1", "Text", text, 4, 100, true},
		"answers nobody reads":    {"10", "Text", "{}", 150, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			worker, _ := reflecting(t, "Items Text Wait")
			c := startReflecting(t, worker, "--workers", "1", "--slots", tc.slots)
			url := "ws://" + c.Addr + "/ws"
			if tc.waits {
				sendCalls(t, deaf(t, url), 1, "Wait", "{}")
				c.WaitMetric("cabrank_in_flight", 1)
			}
			before := c.PeakMemory() >> 10
			for range tc.sockets {
				sendCalls(t, deaf(t, url), tc.calls, tc.method, tc.args)
			}
			sent := float64(tc.sockets * tc.calls)
			testkit.Eventually(t, harness.Patience, "the calls to be taken, refused or answered", func() bool {
				return c.Metric("cabrank_socket_messages_total", "kind", "call") >= sent || c.Metric("cabrank_sockets") < float64(tc.sockets)
			})
			grown := 0
			for last := -1; last != grown; { // until it has stayed for a second
				last = grown
				settled := time.NewTimer(time.Second)
				<-settled.C
				grown = c.PeakMemory()>>10 - before
			}
			t.Logf("%d sockets with %d calls each: the process grew by %d MiB, the gauge says %.0f MiB", tc.sockets, tc.calls, grown>>10, c.Metric("cabrank_socket_buffered_bytes")/(1<<20))
			testkit.Want(t, grown <= budgetKiB+budgetKiB/4+tc.sockets*socketKiB, "that is more than the budget")
		})
	}
}

// deaf opens a socket of which nothing is read, with little room in the kernel.
func deaf(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	return open(t, url, socket.Protocol1, func(d *websocket.Dialer) {
		d.NetDial = func(network, address string) (net.Conn, error) {
			conn, err := net.Dial(network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			}
			return conn, err
		}
	})
}

// sendCalls sends calls until a socket takes no more of them.
func sendCalls(t *testing.T, ws *websocket.Conn, calls int, method, args string) {
	t.Helper()
	for n := range calls {
		text := fmt.Sprintf(`{"type":"call","id":%d,"uri":%q,"timeout":60000,"args":%s}`, n+1, "/"+listedService+"/"+method, args)
		testkit.Must(t, ws.SetWriteDeadline(time.Now().Add(5*time.Second)))
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Logf("after %d calls: %v", n, err)
			return
		}
	}
}
