//go:build real || soak

// Package load_test makes loads on real services, and asks what they tell.
package load_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// startServe starts a server of sockets.
func startServe(t testing.TB, flags ...string) (c harness.Cabrank, url string) {
	t.Helper()
	args := append([]string{"socket", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, flags...)
	c = harness.Cabrank{Process: harness.StartCLI(t, args...)}
	url = "ws://" + c.Listening("listening") + "/ws"
	c.MetricsAddr = c.Listening("metrics listening")
	return c, url
}

// startOld starts the old server with a callee that has the functions of tests.
func startOld(t *testing.T) (url string) {
	t.Helper()
	redis := redisd.Start(t)
	callee, err := oldjuggler.NewCallee(redis.Dial, 4, oldjuggler.TestFunctions())
	testkit.Must(t, err)
	ended := make(chan error)
	go func() { ended <- callee.Run() }()
	t.Cleanup(func() {
		callee.Close()
		<-ended
	})
	handler := oldjuggler.NewServer(oldjuggler.Options{CloseURI: "close", Dial: redis.Dial})
	server := httptest.NewServer(http.HandlerFunc(handler.ServeHTTP))
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/ws"
}
