package redislink_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cabrank/cabrank/internal/redislink"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// within is a context as all have who ask Redis: with a deadline.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redislink.AnswerWithin)
	t.Cleanup(cancel)
	return ctx
}

// A Redis that has lost its place keeps its connections. Whatever says so on one of them,
// the next command goes over another one, and the log has one line.
func TestUnfitConnectionIsLeft(t *testing.T) {
	for _, said := range []string{"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "UNBLOCKED"} {
		t.Run(said, func(t *testing.T) {
			testkit.CheckLeaks(t)
			var lost atomic.Int64 // connections up to this one
			server := fakeredis.Start(t, func(c *fakeredis.Conn, args []string) string {
				if args[0] == "LPUSH" && int64(c.Number) <= lost.Load() {
					return "-" + said + " not here\r\n"
				}
				return fakeredis.Default(args)
			})
			var log strings.Builder
			c, err := redislink.Open(server.Address, slog.New(slog.NewTextHandler(&log, nil)))
			testkit.Must(t, err)
			defer c.Close()
			push := func() error { return c.Do(within(t), c.B().Lpush().Key("k").Element("x").Build()).Error() }
			testkit.Must(t, push())
			lost.Store(100)
			err = push()
			testkit.Want(t, redislink.IsUnfit(err), "got %v", err)
			lost.Store(1)
			err = push()
			testkit.Want(t, err == nil, "after that: %v", err)
			testkit.Want(t, strings.Count(log.String(), "\n") == 1 && strings.Contains(log.String(), said), "the log has %q", log.String())
		})
	}
}

// A replica is found by asking, though it takes events and says nothing.
func TestReplicaIsFound(t *testing.T) {
	testkit.CheckLeaks(t)
	server := fakeredis.Start(t, func(c *fakeredis.Conn, args []string) string {
		if args[0] == "ROLE" && c.Number == 1 {
			return "*5\r\n+slave\r\n+10.0.0.1\r\n:6379\r\n+connected\r\n:7\r\n"
		}
		return fakeredis.Default(args)
	})
	c, err := redislink.Open(server.Address, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer c.Close()
	for i, want := range []bool{false, true} {
		_, err = c.Check(within(t), c, "")
		testkit.Want(t, (err == nil) == want, "%d: %v", i, err)
	}
}
