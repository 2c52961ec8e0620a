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

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/brokertest"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
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
	return runOldCallee(t, server, atOnce, map[string]oldjuggler.Function{
		uri: func(args json.RawMessage) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
			defer cancel()
			return f(ctx, args)
		},
	})
}

// suite has the broker on a Redis pass what every broker has to, with old callees. open
// says where it is, by whom callees reach it, and how it goes.
func suite(t *testing.T, tagged bool, open func(t *testing.T) (options redis.Options, callees dialer, gone func())) {
	t.Helper()
	brokertest.Run(t, func(t *testing.T) brokertest.House {
		t.Helper()
		options, callees, gone := open(t)
		options.CallCap = brokertest.CallCap
		return brokertest.House{
			Broker: openBroker(t, nil, options), Close: gone, Unordered: true, Tagged: tagged,
			Serve: func(uri string, atOnce int, f broker.Function) func() { return serveOld(t, callees, uri, atOnce, f) },
		}
	})
}

// Over Redis with old callees it keeps to all that the broker in memory does.
func TestRedisBroker(t *testing.T) {
	suite(t, false, func(t *testing.T) (redis.Options, dialer, func()) {
		t.Helper()
		server := redisd.Start(t)
		return redis.Options{Address: "unix://" + server.Socket}, server, server.Kill
	})
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
	testkit.Want(t, client.next(oldjuggler.Ack, oldjuggler.Nack).Type == oldjuggler.Nack, "a call was taken without Redis")
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
	for _, want := range []string{`{"type":"gap","channel":"c"}`, `{"type":"evnt","channel":"c","args":1}`} {
		testkit.Equal(t, request(t, subscriber, ""), want, "the answer")
	}
	testkit.Equal(t, ours.Stats().Sockets, 2, "sockets")
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
	testkit.Want(t, length("juggler:calls:{strange}") == 1, "what is nobody's was taken")
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
