//go:build soak

package socket_test

import (
	"net/http"
	"testing"

	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A server whose Redis is gone for long is not ready, and says so on its page; until Redis
// is back.
func TestReadinessFollowsRedisSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	c, _ := startServe(t, "--redis", "unix://"+server.Socket, "--probes", "127.0.0.1:0")
	c.ProbesAddr = c.Listening("probes listening")
	is := func(status int, up float64) func() bool {
		return func() bool { return c.Probe("readiness") == status && c.Metric("cabrank_broker_up") == up }
	}
	testkit.Eventually(t, harness.Patience, "it to be ready", is(http.StatusOK, 1))
	server.Kill()
	testkit.Eventually(t, harness.Patience, "the loss to be seen", is(http.StatusOK, 0))
	testkit.Eventually(t, harness.Patience, "it not to be ready", is(http.StatusServiceUnavailable, 0))
	testkit.Must(t, server.Restart())
	testkit.Eventually(t, harness.Patience, "it to be ready again", is(http.StatusOK, 1))
	c.WaitLog(harness.Patience, "redis answers again")
}

// What one application says to its sockets is nothing to those of another database of the
// same Redis; events are those of all, and the log says so.
func TestDatabasesSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	_, production := startServe(t, "--redis", "unix://"+server.Socket, "--push", "127.0.0.1:0")
	staging, _ := startServe(t, "--redis", "unix://"+server.Socket+"?db=1", "--push", "127.0.0.1:0")
	staging.WaitLog(harness.Patience, "databases have no channels of their own")
	push := staging.Listening("push listening")
	ws := joinChannel(t, production, socket.Protocol1, "orders")
	for _, order := range []struct{ verb, body string }{
		{"broadcast", `{"everyone":true,"channel":"notice","args":1}`},
		{"publish", `{"channel":"orders","args":2}`},
	} {
		status := pushHTTP(t, push, order.verb, order.body)
		testkit.Need(t, status == http.StatusOK, "%s: status %d", order.verb, status)
	}
	testkit.Says(t, request(t, ws, ""), `"channel":"orders","args":2`)
}
