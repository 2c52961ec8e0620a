//go:build real || soak

package socket_test

import (
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Ten thousand sockets that are silent have no goroutine each, and little memory; all are
// there when they are needed. The bounds are ten times what is measured: 17 goroutines and
// 5 KiB a socket.
func TestIdleSockets(t *testing.T) {
	const sockets, goroutines, kib = 10_000, 200, 60
	c, url := startServe(t, "--test-functions", "--max-handshakes", "100000")
	before := harness.RSSKiB(t, c.PID)
	all := openMany(t, url, oldjuggler.Protocol, sockets)
	c.WaitMetric("cabrank_sockets", sockets)
	n, grown := c.Metric("go_goroutines"), harness.RSSKiB(t, c.PID)-before
	t.Logf("%v goroutines, %.1f KiB a socket", n, float64(grown)/sockets)
	if n > goroutines || grown > sockets*kib {
		t.Errorf("%v goroutines, %d KiB, want at most %d and %d", n, grown, goroutines, sockets*kib)
	}
	call := []byte(`{"meta":{"type":1},"payload":{"uri":"test.echo","args":1}}`)
	for _, ws := range all {
		testkit.Must(t, ws.WriteMessage(websocket.TextMessage, call))
	}
	for _, ws := range all {
		for range 2 { // ACK and RES
			if _, _, err := ws.ReadMessage(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%v goroutines, %.1f KiB a socket after a call of each", c.Metric("go_goroutines"), float64(harness.RSSKiB(t, c.PID)-before)/sockets)
}
