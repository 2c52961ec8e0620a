//go:build real || soak

package socket_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/brokertest"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// openBroker opens our broker on a Redis.
func openBroker(t *testing.T, server *redisd.Server, options redis.Options) *redis.Broker {
	t.Helper()
	if options.Address == "" {
		options.Address = "unix://" + server.Socket
	}
	options.Log = slog.New(slog.DiscardHandler)
	b, err := redis.Open(options)
	testkit.Must(t, err)
	t.Cleanup(b.Close)
	return b
}

// startNew starts our server on a Redis.
func startNew(t *testing.T, server *redisd.Server, options socket.Options, more redis.Options) (url string, s *socket.Server) {
	t.Helper()
	options.Broker = openBroker(t, server, more)
	s = socket.New(options)
	listener := httptest.NewServer(http.HandlerFunc(s.ServeHTTP))
	t.Cleanup(func() {
		s.Close()
		listener.Close()
	})
	return "ws" + strings.TrimPrefix(listener.URL, "http") + "/ws", s
}

// serveOld has an old callee answer by a function of ours, with a deadline of its own:
// old callees have none.
func serveOld(t *testing.T, server dialer, uri string, atOnce int, f broker.Function) (stop func()) {
	t.Helper()
	callee, err := oldjuggler.NewCallee(server.Dial, atOnce, map[string]oldjuggler.Function{
		uri: func(args json.RawMessage) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
			defer cancel()
			return f(ctx, args)
		},
	})
	testkit.Must(t, err)
	ended := make(chan error)
	go func() { ended <- callee.Run() }()
	return func() {
		callee.Close()
		<-ended
	}
}

// Over Redis with old callees it keeps to all that the broker in memory does.
func TestRedisBroker(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.House {
		t.Helper()
		server := redisd.Start(t)
		return brokertest.House{
			Broker: openBroker(t, server, redis.Options{CallCap: brokertest.CallCap}),
			Serve: func(uri string, atOnce int, f broker.Function) func() {
				return serveOld(t, server, uri, atOnce, f)
			},
			Close: server.Kill, Unordered: true,
		}
	})
}

// Every exchange, by our server over Redis, with an old callee.
func TestNewServerExchanges(t *testing.T) {
	testkit.CheckLeaks(t)
	target := exchange.Target{Kind: "new", Start: func(t *testing.T, options exchange.Options) (string, func()) {
		t.Helper()
		server := redisd.Start(t)
		startOldCallee(t, server)
		url, _ := startNew(t, server, socket.Options{
			Origins: options.Words("origins"), AllowEmptySubprotocol: options["allow_empty_subprotocol"] != "",
			ReadLimit: int64(options.Int("read_limit")), WriteLimit: int64(options.Int("write_limit")),
			CloseURI: options["close_uri"],
		}, redis.Options{CallCap: options.Int("call_cap")})
		return url, server.Kill
	}}
	for _, c := range exchange.Cases(t) {
		exchange.Run(t, c, target)
	}
}

// What ours leaves in Redis for a call is what the old server does, but for the ids of
// calls, which are its own.
func TestNewServerKeys(t *testing.T) {
	testkit.CheckLeaks(t)
	for name, more := range map[string]redis.Options{"plain": {}, "capped": {CallCap: 10}} {
		t.Run(name, func(t *testing.T) {
			server := redisd.Start(t)
			conn := dialRedis(t, server)
			url, _ := startNew(t, server, socket.Options{}, more)
			client := dialOld(t, url)
			if _, err := client.Call("test.x", map[string]any{"b": []int{1, 2}, "a": "<>"}, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			var text string
			testkit.Eventually(t, harness.Patience, "the call", func() bool {
				text = dump(t, conn)
				return strings.Contains(text, "juggler:calls:{")
			})
			_, after, _ := strings.Cut(text, `"msg_uuid":"`)
			golden(t, "call.txt", text, oldjuggler.UUID(after[:36]))
		})
	}
}

// joinChannel has a socket of a subprotocol subscribe.
func joinChannel(t *testing.T, url, protocol, channel string) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protocol}}
	ws, response, err := dialer.Dial(url, nil)
	testkit.Must(t, err)
	response.Body.Close()
	t.Cleanup(func() { ws.Close() })
	first, sub := 1, `{"meta":{"type":3},"payload":{"channel":"`+channel+`"}}`
	if protocol == socket.Protocol1 {
		first, sub = 2, `{"type":"sub","id":1,"channel":"`+channel+`"}` // a welcome, and the ack
	}
	testkit.Must(t, ws.WriteMessage(websocket.TextMessage, []byte(sub)))
	ws.SetReadDeadline(time.Now().Add(harness.Patience))
	for range first {
		if _, _, err := ws.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	ws.SetReadDeadline(time.Time{})
	return ws
}

// When Redis is gone, sockets stay and requests are refused; when it is back, calls and
// subscriptions go on without anybody having to do anything.
func TestRedisRestarts(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	url, ours := startNew(t, server, socket.Options{}, redis.Options{})
	client := dialOld(t, url)
	subscriber := joinChannel(t, url, socket.Protocol1, "c")
	server.Kill()
	client.Call("test.echo", "x", 300*time.Millisecond)
	if client.next(oldjuggler.Ack, oldjuggler.Nack).Type != oldjuggler.Nack {
		t.Error("a call was taken without Redis")
	}
	testkit.Must(t, server.Restart())
	startOldCallee(t, server)
	testkit.Eventually(t, harness.Patience, "a call to be answered", func() bool {
		client.Call("test.echo", "x", time.Second)
		return client.ended().Type == oldjuggler.Res
	})
	testkit.Eventually(t, harness.Patience, "the subscription to be back", func() bool {
		n, _ := dialRedis(t, server).Do("PUBLISH", "c", `{"msg_uuid":"","args":1}`)
		return n == int64(1)
	})
	subscriber.SetReadDeadline(time.Now().Add(harness.Patience))
	for _, want := range []string{`{"type":"gap","channel":"c"}`, `{"type":"evnt","channel":"c","args":1}`} {
		if _, text, err := subscriber.ReadMessage(); err != nil || string(text) != want {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	}
	if n := ours.Stats().Sockets; n != 2 {
		t.Errorf("%d sockets", n)
	}
}

// What has expired is swept, what is alive stays, whoever has left it.
func TestSweep(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	conn := dialRedis(t, server)
	push := func(kind, tag, id string, alive bool) {
		payload, _ := json.Marshal(map[string]string{"conn_uuid": "c", "msg_uuid": id, "uri": "u"})
		if alive {
			conn.Do("SET", "juggler:"+kind+":timeout:{"+tag+"}:"+id, 60000, "PX", 60000)
		}
		conn.Do("LPUSH", "juggler:"+kind+":{"+tag+"}", payload)
	}
	for i := range 450 {
		id := string(oldjuggler.NewUUID())
		push("calls", "dead", id, false)
		push("results", "gone", id, false)
		push("calls", "mixed", id, i%50 == 0)
	}
	conn.Do("LPUSH", "juggler:calls:{strange}", "not JSON")
	openBroker(t, server, redis.Options{Sweep: 50 * time.Millisecond})
	length := func(list string) int64 {
		n, _ := conn.Do("LLEN", list)
		return n.(int64)
	}
	testkit.Eventually(t, harness.Patience, "the sweep", func() bool {
		return length("juggler:calls:{dead}") == 0 && length("juggler:results:{gone}") == 0 && length("juggler:calls:{mixed}") == 9
	})
	if length("juggler:calls:{strange}") != 1 {
		t.Error("what is nobody's was taken")
	}
}

// A call is two commands, and a share of a pop and of a delete.
func TestNewRoundTrips(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	startOldCallee(t, server)
	url, _ := startNew(t, server, socket.Options{}, redis.Options{})
	client := dialOld(t, url)
	const calls = 400
	for range calls {
		client.Call("test.echo", "x", 10*time.Second)
	}
	for range calls {
		client.next(oldjuggler.Res)
	}
	counts := commandCounts(t, dialRedis(t, server))
	// SET and LPUSH of the callee's results are inside of its scripts.
	if counts["blmpop"] > calls*9/10 || counts["del"] > 2*calls || counts["eval"] > 8 { // the callee's scripts, once
		t.Errorf("%v", counts)
	}
	t.Log(counts)
}
