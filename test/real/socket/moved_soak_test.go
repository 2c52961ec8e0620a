//go:build soak

package socket_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A name goes from a primary to its replica, and the old primary lives on as a replica, with
// all connections: calls are answered and events are heard at the new one.
func TestNameMovesSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	set := redisd.StartSet(t, 0)
	name := redisd.StartProxy(t, set.Primary.Address)
	runCallee(t, callee.Options{Redis: name.Address}, withTestFunctions)
	process, url := startServe(t, "--redis", name.Address)
	c := dialClient(t, url, client.Options{Protocols: []string{client.Juggler1}})
	news, err := c.Subscribe(t.Context(), "news")
	testkit.Must(t, err)
	works := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		text, err := client.Call[string](ctx, c, "test.echo", "x")
		return err == nil && text == "x" && c.Publish(ctx, "news", 1) == nil
	}
	if !works() {
		t.Fatal("nothing works at first")
	}
	host, port, _ := strings.Cut(set.Replica.Address, ":")
	ask(t, set.Replica, "REPLICAOF", "NO", "ONE")
	ask(t, set.Primary, "REPLICAOF", host, port)
	name.MoveTo(set.Replica.Address)
	testkit.Eventually(t, harness.Patience, "nobody at the old one", func() bool {
		return works() && !strings.Contains(ask(t, set.Primary, "CLIENT", "LIST"), "sub=1 ")
	})
	if _, err := news.Next(t.Context()); err != nil {
		t.Error(err)
	}
	process.WaitLog(harness.Patience, "they are made anew")
}
