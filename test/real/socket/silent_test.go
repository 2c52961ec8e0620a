//go:build real || soak

package socket_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A Redis that is silent, and closes nothing, is noticed: requests are refused, sockets
// stay, and all goes on when it answers again.
func TestSilentRedis(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	startOldCallee(t, server)
	url, ours := startNew(t, server, socket.Options{}, redis.Options{})
	client := dialOld(t, url)
	testkit.Must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	began := time.Now()
	client.Pub("c", "x")
	in := client.next(oldjuggler.Nack, oldjuggler.Ack)
	testkit.Want(t, in.Type == oldjuggler.Nack, "got %+v from a Redis that is silent", in)
	t.Logf("refused after %v", time.Since(began))
	testkit.Must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	testkit.Eventually(t, harness.Patience, "a call to be answered", func() bool {
		client.Call("test.echo", "x", time.Second)
		return client.ended().Type == oldjuggler.Res
	})
	testkit.Equal(t, ours.Stats().Sockets, 1, "sockets")
}

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
	testkit.Want(t, n <= goroutines && grown <= sockets*kib,
		"%v goroutines, %d KiB, want at most %d and %d", n, grown, goroutines, sockets*kib)
	call := []byte(`{"meta":{"type":1},"payload":{"uri":"test.echo","args":1}}`)
	for _, ws := range all {
		testkit.Must(t, ws.WriteMessage(websocket.TextMessage, call))
	}
	for _, ws := range all {
		for range 2 { // ACK and RES
			_, _, err := ws.ReadMessage()
			testkit.Must(t, err)
		}
	}
	t.Logf("%v goroutines, %.1f KiB a socket after a call of each", c.Metric("go_goroutines"), float64(harness.RSSKiB(t, c.PID)-before)/sockets)
}
