//go:build soak

package socket_test

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
)

// Redis is stopped for longer than calls have: none of them runs, and nobody is told that a
// call was refused which may have run.
func TestStalledRedisSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	var ran atomic.Int64
	runCallee(t, callee.Options{Redis: "unix://" + server.Socket}, func(c *callee.Callee) {
		callee.Handle(c, "count", func(_ context.Context, late int64) (int64, error) { return ran.Add(late), nil })
	})
	_, url := startServe(t, "--redis", "unix://"+server.Socket)
	c := dialClient(t, url, client.Options{Protocols: []string{client.Juggler1}})
	call := func(timeout time.Duration, late int64) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := client.Call[int64](ctx, c, "count", late)
		return err
	}
	testkit.Must(t, call(time.Minute, 0))
	testkit.Must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	ended := make(chan error)
	for range 5 {
		go func() { ended <- call(time.Second, 1) }()
	}
	for range 5 {
		if err := <-ended; err == nil {
			t.Error("a call was answered by a Redis that is stopped")
		} else if refused, is := errors.AsType[*client.RefusedError](err); is && refused.Code != 503 {
			t.Error(err)
		}
	}
	testkit.Must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	testkit.Eventually(t, time.Minute, "calls to be answered again", func() bool { return call(time.Second, 0) == nil })
	n := ran.Load()
	testkit.Want(t, n == 0, "%d calls ran whose time was over", n)
}

// The bar: a thousand sockets that read nothing of 20,000 events, and the budget of the
// default. All have the same events, so that nearly all is what each has beside them.
func TestSlowReadersSoak(t *testing.T) { slowReaders(t, 1000, 20_000, 1, 64<<20, 64<<20) }

// A hundred sockets of which each has events of its own use the budget up. Beside it each
// has a goroutine that cannot write, which does not count: 30 KiB.
func TestSlowReadersApartSoak(t *testing.T) { slowReaders(t, 100, 300_000, 100, 64<<20, 72<<20) }
