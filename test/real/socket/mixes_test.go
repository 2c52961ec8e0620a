//go:build real || soak

package socket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Old and new servers, callees and clients on one Redis, in every mix: each call comes back
// to its caller, whoever answers it, and each event to all. Nothing is left behind.
func TestMixesOnOneRedis(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	m := mixOf(t, server, "unix://"+server.Socket)
	m.works(t)
	testkit.Eventually(t, harness.Patience, "nothing to be left in Redis", func() bool { return dump(t, dialRedis(t, server)) == "" })
	m.expires(t)
}

// The same on one Cluster.
func TestMixesOnACluster(t *testing.T) {
	testkit.CheckLeaks(t)
	c := redisd.StartCluster(t, 3, 0)
	m := mixOf(t, c, c.URL())
	m.works(t)
	m.expires(t)
}

// works has everybody call everybody, and publish.
func (m *mixture) works(t *testing.T) {
	t.Helper()
	for caller, from := range m.clients {
		for uri, answers := range m.callees {
			err := from.callsUntil(uri, answers)
			testkit.Want(t, err == nil, "%s calls %s: %v", caller, uri, err)
		}
	}
	m.publish(t)
}

// mixture is clients by the server that they are at, and what answers each URI.
type mixture struct {
	clients map[string]*mixClient
	callees map[string][]string
}

// mixOf starts two of ours and an old server, callees of both kinds, alone and together,
// and a client of each kind at each server.
func mixOf(t *testing.T, dial dialer, address string) *mixture {
	t.Helper()
	m := &mixture{clients: map[string]*mixClient{}, callees: map[string][]string{
		"by.old": {"old"}, "by.new": {"new"}, "by.both": {"old", "new"},
	}}
	for uri, kinds := range m.callees {
		for _, kind := range kinds {
			m.callee(t, kind, uri, dial, address)
		}
	}
	ours, _ := startNew(t, nil, socket.Options{}, redis.Options{Address: address})
	other, _ := startNew(t, nil, socket.Options{}, redis.Options{Address: address})
	for name, url := range map[string]string{"old": startOld(t, dial, oldjuggler.Options{}), "new": ours, "other new": other} {
		for kind, dial := range map[string]func(*testing.T, string) *mixClient{"old": mixOld, "new": mixNew} {
			m.clients[kind+" client at "+name+" server"] = dial(t, url)
		}
	}
	return m
}

// callee has one kind of callee answer a URI: with what it was given, and its kind.
func (m *mixture) callee(t *testing.T, kind, uri string, dial dialer, address string) {
	t.Helper()
	if kind == "old" {
		t.Cleanup(runOldCallee(t, dial, 4, map[string]oldjuggler.Function{uri: func(args json.RawMessage) (json.RawMessage, error) {
			return json.Marshal([]string{string(args), kind})
		}}))
		return
	}
	runCallee(t, callee.Options{Redis: address, Workers: 4}, func(c *callee.Callee) {
		callee.Handle(c, uri, func(_ context.Context, args json.RawMessage) ([]string, error) {
			return []string{string(args), kind}, nil
		})
	})
}

// mixClient is a client of either kind.
type mixClient struct {
	call      func(uri, args string, timeout time.Duration) (result string, err error)
	subscribe func(channel string) error
	publish   func(channel, args string) error
	events    chan string // as "channel args"
}

// mixOld dials by the client of the time.
func mixOld(t *testing.T, url string) *mixClient {
	t.Helper()
	c := &mixClient{events: make(chan string, 10_000)}
	got := make(chan oldjuggler.Incoming, 100) // to one request at a time, and late ones
	opened, err := oldjuggler.Dial(url, nil, func(in oldjuggler.Incoming) {
		if in.Type == oldjuggler.Event {
			c.events <- in.Channel + " " + string(in.Args)
			return
		}
		got <- in
	})
	testkit.Must(t, err)
	t.Cleanup(opened.Close)
	await := func(id oldjuggler.UUID, err error, kind int) (string, error) {
		for in := range got {
			switch {
			case in.For != id:
			case in.Type == kind:
				return string(in.Args), err
			case in.Type == oldjuggler.Nack || in.Type == oldjuggler.Expired:
				return "", fmt.Errorf("%d: %s", in.Type, in.Message)
			}
		}
		return "", err
	}
	c.call = func(uri, args string, timeout time.Duration) (string, error) {
		id, err := opened.Call(uri, args, timeout)
		return await(id, err, oldjuggler.Res)
	}
	c.subscribe = func(channel string) error {
		id, err := opened.Sub(channel, false)
		_, err = await(id, err, oldjuggler.Ack)
		return err
	}
	c.publish = func(channel, args string) error {
		id, err := opened.Pub(channel, args)
		_, err = await(id, err, oldjuggler.Ack)
		return err
	}
	return c
}

// mixNew dials by package client.
func mixNew(t *testing.T, url string) *mixClient {
	t.Helper()
	opened, err := client.Dial(t.Context(), url, client.Options{})
	testkit.Must(t, err)
	c := &mixClient{events: make(chan string, 10_000)}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		opened.Close()
		reading.Wait()
	})
	c.call = func(uri, args string, timeout time.Duration) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		result, err := opened.Call(ctx, uri, args)
		return string(result), err
	}
	c.subscribe = func(channel string) error {
		events, err := opened.Subscribe(context.Background(), channel)
		if err != nil {
			return err
		}
		reading.Go(func() {
			for e, err := range events.All(context.Background()) {
				if err == nil {
					c.events <- e.Channel + " " + string(e.Args)
				}
			}
		})
		return nil
	}
	c.publish = func(channel, args string) error { return opened.Publish(context.Background(), channel, args) }
	return c
}

// callsUntil calls until each of those that answer has.
func (c *mixClient) callsUntil(uri string, answers []string) error {
	missing := map[string]bool{}
	for _, kind := range answers {
		missing[kind] = true
	}
	for n := 0; n < 5 || len(missing) > 0; n++ {
		args := fmt.Sprint(n)
		result, err := c.call(uri, args, 20*time.Second)
		var got [2]string
		if err != nil || json.Unmarshal([]byte(result), &got) != nil || got[0] != fmt.Sprintf("%q", args) || !slices.Contains(answers, got[1]) {
			return fmt.Errorf("got %s, %w", result, err)
		}
		delete(missing, got[1])
		if n > 5000 {
			return fmt.Errorf("none was answered by %v", missing)
		}
	}
	return nil
}

// publish has each client publish, and hear all.
func (m *mixture) publish(t *testing.T) {
	t.Helper()
	const each = 20
	want := map[string]bool{}
	for name := range m.clients {
		for i := range each {
			want[fmt.Sprintf("from %s %q", name, fmt.Sprint(i))] = true
		}
	}
	for _, c := range m.clients {
		for name := range m.clients {
			testkit.Must(t, c.subscribe("from "+name))
		}
	}
	for name, c := range m.clients {
		for i := range each {
			testkit.Must(t, c.publish("from "+name, fmt.Sprint(i)))
		}
	}
	for name, c := range m.clients {
		got := map[string]bool{}
		for range want {
			event := testkit.Take(t, c.events, harness.Patience, "%s: %d events of %d", name, len(got), len(want))
			got[event] = true
		}
		testkit.Want(t, maps.Equal(got, want), "%s: got %v", name, got)
	}
}

// expires calls what nobody serves.
func (m *mixture) expires(t *testing.T) {
	t.Helper()
	for name, c := range m.clients {
		result, err := c.call("by.none", "x", 50*time.Millisecond)
		testkit.Want(t, err != nil, "%s: got %s", name, result)
	}
}
