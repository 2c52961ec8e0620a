//go:build soak

package socket_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
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
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return text
}
