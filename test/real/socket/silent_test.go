//go:build real || soak

package socket_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A Redis that is silent, and closes nothing, is noticed: requests are refused, sockets
// stay, and all goes on when it answers again.
func TestSilentRedis(t *testing.T) {
	testkit.CheckLeaks(t)
	server := redisd.Start(t)
	startOldCallee(t, server)
	url, ours := startNew(t, server, socket.Options{}, redis.Options{})
	client := dialOld(t, url)
	testkit.Must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	began := time.Now()
	client.Pub("c", "x")
	if in := client.next(oldjuggler.Nack, oldjuggler.Ack); in.Type != oldjuggler.Nack {
		t.Errorf("got %+v from a Redis that is silent", in)
	}
	t.Logf("refused after %v", time.Since(began))
	testkit.Must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	testkit.Eventually(t, harness.Patience, "a call to be answered", func() bool {
		client.Call("test.echo", "x", time.Second)
		return client.ended().Type == oldjuggler.Res
	})
	if n := ours.Stats().Sockets; n != 1 {
		t.Errorf("%d sockets", n)
	}
}
