//go:build real || soak

// Package socket_test runs WebSocket RPC and pub/sub over a real Redis: the programs
// of old, which test/oldjuggler stands for, and ours, alone and mixed.
package socket_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, harness.Role{Name: reflectingRole, Run: runReflecting}, harness.Role{Name: largeRole, Run: runLarge})
}

// dialer is a Redis, or a Cluster.
type dialer interface{ Dial() (redigo.Conn, error) }

// startOld starts an old server on a Redis.
func startOld(t *testing.T, redis dialer, options oldjuggler.Options) (url string) {
	t.Helper()
	options.Dial = redis.Dial
	handler := oldjuggler.NewServer(options)
	server := httptest.NewServer(http.HandlerFunc(handler.ServeHTTP))
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/ws"
}

// startOldCallee starts a callee with the functions of tests.
func startOldCallee(t *testing.T, redis dialer) {
	t.Helper()
	t.Cleanup(runOldCallee(t, redis, oldjuggler.TestFunctions()))
}

// runOldCallee runs one until stop.
func runOldCallee(t *testing.T, redis dialer, functions map[string]oldjuggler.Function) (stop func()) {
	t.Helper()
	callee, err := oldjuggler.NewCallee(redis.Dial, 4, functions)
	testkit.Must(t, err)
	ended := make(chan error)
	go func() { ended <- callee.Run() }()
	return func() {
		callee.Close()
		<-ended
	}
}

// oldPeer is a client of the time, with what it has got.
type oldPeer struct {
	*oldjuggler.Client

	t   *testing.T
	got chan oldjuggler.Incoming
}

// dialOld opens one, which ends with the test.
func dialOld(t *testing.T, url string) *oldPeer {
	t.Helper()
	p := &oldPeer{t: t, got: make(chan oldjuggler.Incoming, 10_000)}
	opened, err := oldjuggler.Dial(url, nil, func(in oldjuggler.Incoming) {
		select {
		case p.got <- in:
		default: // nobody takes anything
		}
	})
	testkit.Must(t, err)
	t.Cleanup(opened.Close)
	p.Client = opened
	return p
}

// next takes what comes until it is of one of these types.
func (p *oldPeer) next(kinds ...int) oldjuggler.Incoming {
	p.t.Helper()
	for enough := time.After(harness.Patience); ; {
		select {
		case in := <-p.got:
			if slices.Contains(kinds, in.Type) {
				return in
			}
		case <-enough:
			p.t.Fatalf("waited in vain for a message of the types %v", kinds)
		}
	}
}

// ended takes the end of a call.
func (p *oldPeer) ended() oldjuggler.Incoming {
	p.t.Helper()
	return p.next(oldjuggler.Res, oldjuggler.Nack, oldjuggler.Expired)
}

// The old server is what the golden exchanges are true of.
func TestOldServerExchanges(t *testing.T) {
	testkit.CheckLeaks(t)
	target := exchange.Target{Kind: "old", Start: func(t *testing.T, options exchange.Options) (string, func()) {
		t.Helper()
		redis := redisd.Start(t)
		startOldCallee(t, redis)
		return startOld(t, redis, oldjuggler.Options{
			Origins: options.Words("origins"), AllowEmptySubprotocol: options["allow_empty_subprotocol"] != "",
			ReadLimit: int64(options.Int("read_limit")), WriteLimit: int64(options.Int("write_limit")),
			CallCap: options.Int("call_cap"), CloseURI: options["close_uri"],
		}), redis.Kill
	}}
	for _, c := range exchange.Cases(t) {
		exchange.Run(t, c, target)
	}
}
