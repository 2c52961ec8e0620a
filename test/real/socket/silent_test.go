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
	got := make(chan oldjuggler.Incoming, 1000)
	client, err := oldjuggler.Dial(url, nil, func(in oldjuggler.Incoming) { got <- in })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	kinds := func() int {
		select {
		case in := <-got:
			return in.Type
		case <-time.After(harness.Patience):
			t.Fatal("waited in vain")
			return 0
		}
	}
	if err := syscall.Kill(server.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	client.Pub("c", "x")
	if kind := kinds(); kind != oldjuggler.Nack {
		t.Errorf("got a message of type %d from a Redis that is silent", kind)
	}
	t.Logf("refused after %v", time.Since(began))
	if err := syscall.Kill(server.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, harness.Patience, "a call to be answered", func() bool {
		client.Call("test.echo", "x", time.Second)
		for {
			switch kinds() {
			case oldjuggler.Res:
				return true
			case oldjuggler.Nack, oldjuggler.Expired:
				return false
			}
		}
	})
	if n := ours.Stats().Sockets; n != 1 {
		t.Errorf("%d sockets", n)
	}
}
