//go:build soak

package socket_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The connection of the subscriptions breaks while somebody publishes: events are missed,
// and whoever has missed them is told.
func TestGapIsToldSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	url, _ := startNew(t, server, socket.Options{}, redis.Options{})
	now := joinChannel(t, url, "juggler.1", "news")
	old := joinChannel(t, url, "juggler.0", "news")
	conn := dialRedis(t, server)
	publish := func(n int) {
		if _, err := conn.Do("PUBLISH", "news", fmt.Sprintf(`{"msg_uuid":"00000000-0000-0000-0000-%012d","args":%d}`, n, n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Do("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
		t.Fatal(err)
	}
	publish(1) // nobody hears it
	if _, text, err := now.ReadMessage(); err != nil || string(text) != `{"type":"gap","channel":"news"}` {
		t.Errorf("juggler.1 was told %s, %v", text, err)
	}
	publish(2)
	if _, text, err := now.ReadMessage(); err != nil || string(text) != `{"type":"evnt","id":"00000000-0000-0000-0000-000000000002","channel":"news","args":2}` {
		t.Errorf("behind the gap came %s, %v", text, err)
	}
	if _, text, err := old.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseAbnormalClosure) {
		t.Errorf("juggler.0 was told %s, %v", text, err)
	}
}

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
		if status := pushHTTP(t, push, order.verb, order.body); status != http.StatusOK {
			t.Fatalf("%s: status %d", order.verb, status)
		}
	}
	ws.SetReadDeadline(time.Now().Add(harness.Patience))
	if _, text, err := ws.ReadMessage(); err != nil || !strings.Contains(string(text), `"channel":"orders","args":2`) {
		t.Errorf("production was told %s, %v", text, err)
	}
}
