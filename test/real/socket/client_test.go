//go:build real

package socket_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

func dialClient(t *testing.T, url string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The client gets along with each kind of server: ours with functions of its own, ours
// over Redis, and the old one.
func TestClientOnEachServer(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{
		"memory": func(t *testing.T) string {
			t.Helper()
			_, url := startServe(t, "--test-functions")
			return url
		},
		"redis": func(t *testing.T) string {
			t.Helper()
			redis := redisd.Start(t)
			startOldCallee(t, redis)
			_, url := startServe(t, "--redis", "unix://"+redis.Socket)
			return url
		},
		"old": func(t *testing.T) string {
			t.Helper()
			redis := redisd.Start(t)
			startOldCallee(t, redis)
			return startOld(t, redis, oldjuggler.Options{CloseURI: "close"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.CheckLeaks(t)
			url := start(t)
			protocols := map[string]string{"juggler.1": client.Juggler1, "juggler.0": client.Juggler0}
			if name == "old" {
				protocols["juggler.1"] = client.Juggler0 // it has no other one
			}
			for first, want := range protocols {
				c := dialClient(t, url, client.Options{Protocols: slices.Compact([]string{first, client.Juggler0})})
				clientCalls(t, c)
				clientEvents(t, c, name == "old")
				if c.Protocol() != want || c.Stats().Connections != 1 {
					t.Errorf("protocol %q, %+v", c.Protocol(), c.Stats())
				}
			}
		})
	}
}

// clientCalls makes calls that end in each way, and many at a time.
func clientCalls(t *testing.T, c *client.Client) {
	t.Helper()
	_, err := client.Call[string](t.Context(), c, "test.delay", "soon")
	if _, failed := errors.AsType[*client.FunctionError](err); !failed {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, "test.delay", "900")
	if expired, ok := errors.AsType[*client.ExpiredError](err); !ok || !expired.Taken {
		t.Errorf("got %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				text := fmt.Sprintf("%d<%d>", i, j)
				if got, err := client.Call[string](t.Context(), c, "test.echo", text); err != nil || got != text {
					t.Errorf("got %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// clientEvents publishes to itself, by channel and by pattern. An old server may send
// events in any order.
func clientEvents(t *testing.T, c *client.Client, anyOrder bool) {
	t.Helper()
	channel, err := c.Subscribe(t.Context(), "a.b")
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := c.SubscribePattern(t.Context(), "a.*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.Post(t.Context(), "a.b", i); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*client.Subscription{channel, pattern} {
		seen := map[int]bool{}
		for i, err := range client.Values[int](t.Context(), s) {
			if err != nil || seen[i] || !anyOrder && i != len(seen) {
				t.Fatalf("got %d, %v, behind %d others", i, err, len(seen))
			}
			if seen[i] = true; len(seen) == 100 {
				s.Close()
			}
		}
	}
	if err := c.Publish(t.Context(), "a.b", nil); err != nil {
		t.Error(err)
	}
	if n := c.Stats(); n.Events != 200 {
		t.Errorf("%+v", n)
	}
}

// A server that stops and comes back, in the middle of calls: those that were under way
// say so, the others go on, and subscriptions are made again.
func TestClientSurvivesARestart(t *testing.T) {
	testkit.CheckLeaks(t)
	for name, signal := range map[string]syscall.Signal{"stop": syscall.SIGTERM, "kill": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			server, url := startServe(t, "--test-functions")
			address := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
			c := dialClient(t, url, client.Options{ReconnectMax: time.Second})
			s, err := c.Subscribe(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := c.Call(t.Context(), "test.delay", "1000")
				ended <- err
			}()
			testkit.Eventually(t, harness.Patience, "it to be taken", func() bool { return c.Stats().Acks == 2 })
			server.Signal(signal)
			err = <-ended
			lost, ok := errors.AsType[*client.DisconnectedError](err)
			if name == "stop" && err != nil || name == "kill" && (!ok || !lost.Sent) {
				t.Errorf("the call: %v", err)
			}
			server.ExitCode(harness.Patience)
			startServe(t, "--test-functions", "--listen", address)
			if got, err := client.Call[string](t.Context(), c, "test.reverse", "abc"); err != nil || got != "cba" {
				t.Errorf("got %q, %v", got, err)
			}
			if err := c.Publish(t.Context(), "c", "back"); err != nil {
				t.Fatal(err)
			}
			if e, err := s.Next(t.Context()); err != nil || !e.Resumed || string(e.Args) != `"back"` {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}
