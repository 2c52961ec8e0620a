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

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, append(costRoles(), harness.Role{Name: reflectingRole, Run: runReflecting})...)
}

// dialer is a Redis, or a Cluster.
type dialer interface{ Dial() (redigo.Conn, error) }

// startOld starts an old server on a Redis.
func startOld(t *testing.T, store dialer, options oldjuggler.Options) (url string) {
	t.Helper()
	options.Dial = store.Dial
	handler := oldjuggler.NewServer(options)
	server := httptest.NewServer(http.HandlerFunc(handler.ServeHTTP))
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/ws"
}

// startOldCallee starts a callee with the functions of tests.
func startOldCallee(t *testing.T, store dialer) {
	t.Helper()
	t.Cleanup(runOldCallee(t, store, 4, oldjuggler.TestFunctions()))
}

// runOldCallee runs one until stop.
func runOldCallee(t *testing.T, store dialer, workers int, functions map[string]oldjuggler.Function) (stop func()) {
	t.Helper()
	callee, err := oldjuggler.NewCallee(store.Dial, workers, functions)
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

	t   testing.TB
	got chan oldjuggler.Incoming
}

// dialOld opens one, which ends with the test.
func dialOld(t testing.TB, url string) *oldPeer {
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

// exchanges has a server over Redis, an old one or one of ours, and callees pass cases.
func exchanges(t *testing.T, kind string, startCallee func(*testing.T, dialer), cases []exchange.Case) {
	t.Helper()
	testkit.CheckLeaks(t)
	target := exchange.Target{Kind: kind, Start: func(t *testing.T, options exchange.Options) (string, func()) {
		t.Helper()
		server := redisd.Start(t)
		startCallee(t, server)
		empty, reads, writes := options["allow_empty_subprotocol"] != "", int64(options.Int("read_limit")), int64(options.Int("write_limit"))
		if kind == "old" {
			return startOld(t, server, oldjuggler.Options{
				Origins: options.Words("origins"), AllowEmptySubprotocol: empty, ReadLimit: reads, WriteLimit: writes,
				CallCap: options.Int("call_cap"), CloseURI: options["close_uri"],
			}), server.Kill
		}
		url, _ := startNew(t, server, socket.Options{
			Origins: options.Words("origins"), AllowEmptySubprotocol: empty, ReadLimit: reads, WriteLimit: writes, CloseURI: options["close_uri"],
		}, redis.Options{CallCap: options.Int("call_cap")})
		return url, server.Kill
	}}
	for _, c := range cases {
		exchange.Run(t, c, target)
	}
}

// The old server is what the golden exchanges are true of.
func TestOldServerExchanges(t *testing.T) { exchanges(t, "old", startOldCallee, exchange.Cases(t)) }

// Every exchange, by our server over Redis, with an old callee.
func TestNewServerExchanges(t *testing.T) { exchanges(t, "new", startOldCallee, exchange.Cases(t)) }

// Every exchange of calls, by an old server and by ours, with a callee of ours.
func TestCalleeExchanges(t *testing.T) {
	calls := slices.DeleteFunc(exchange.Cases(t), func(c exchange.Case) bool { return c.File != "3-calls.txt" })
	for _, kind := range []string{"old", "new"} {
		exchanges(t, kind, func(t *testing.T, server dialer) {
			t.Helper()
			startCallee(t, server.(*redisd.Server), callee.Options{}, nil)
		}, calls)
	}
}
