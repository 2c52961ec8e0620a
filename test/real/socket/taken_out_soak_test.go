//go:build soak

package socket_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A node that was taken out of its Cluster lives on alone: subscriptions leave it.
func TestNodeTakenOutSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	c := redisd.StartCluster(t, 3, 1)
	var node *redisd.Server
	var b *redis.Broker
	for node == nil { // until they are on a replica, which has no slots
		opened, err := redis.Open(redis.Options{Address: c.URL(), Log: slog.New(slog.DiscardHandler)})
		testkit.Must(t, err)
		subscribed := make(chan error, 1)
		opened.Subscribe(broker.Topic{Name: "c"}, func(err error) { subscribed <- err })
		testkit.Must(t, <-subscribed)
		for _, replica := range c.Replicas {
			if strings.Contains(ask(t, replica, "CLIENT", "LIST"), " sub=1 ") {
				b, node = opened, replica
			}
		}
		if b == nil {
			opened.Close()
		}
	}
	defer b.Close()
	events := make(chan broker.Event, 1000)
	b.Listen(func(_ broker.Topic, e broker.Event) { events <- e })
	id := ask(t, node, "CLUSTER", "MYID")
	ask(t, node, "CLUSTER", "RESET", "HARD")
	for _, other := range c.All() {
		if other != node {
			ask(t, other, "CLUSTER", "FORGET", id)
		}
	}
	began := time.Now()
	testkit.Eventually(t, time.Minute, "events to come again", func() bool {
		b.Publish(broker.Event{Channel: "c", Args: json.RawMessage(`"x"`)}, func(error) {})
		select {
		case <-events:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
	t.Logf("events come again after %v", time.Since(began).Round(time.Second))
}

// ask runs a command.
func ask(t *testing.T, s *redisd.Server, name string, args ...any) string {
	t.Helper()
	conn, err := s.Dial()
	testkit.Must(t, err)
	defer conn.Close()
	text, err := redigo.String(conn.Do(name, args...))
	testkit.Need(t, err == nil, "%s %v: %v", name, args, err)
	return text
}

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
	testkit.Need(t, works(), "nothing works at first")
	host, port, _ := strings.Cut(set.Replica.Address, ":")
	ask(t, set.Replica, "REPLICAOF", "NO", "ONE")
	ask(t, set.Primary, "REPLICAOF", host, port)
	name.MoveTo(set.Replica.Address)
	testkit.Eventually(t, harness.Patience, "nobody at the old one", func() bool {
		return works() && !strings.Contains(ask(t, set.Primary, "CLIENT", "LIST"), "sub=1 ")
	})
	_, err = news.Next(t.Context())
	testkit.Want(t, err == nil, "%v", err)
	process.WaitLog(harness.Patience, "they are made anew")
}
