//go:build real || soak

package socket_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
)

// The binary over Redis, one and a Cluster, with an old callee and an old client.
func TestServeOverRedis(t *testing.T) {
	one, many := redisd.Start(t), redisd.StartCluster(t, 3, 0)
	for address, dial := range map[string]dialer{"unix://" + one.Socket: one, many.URL(): many} {
		t.Cleanup(runOldCallee(t, dial, 4, map[string]oldjuggler.Function{"test.reverse": oldjuggler.TestFunctions()["test.reverse"]}))
		_, url := startServe(t, "--redis", address)
		client := dialOld(t, url)
		if _, err := client.Call("test.reverse", "abc", 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if in := client.next(oldjuggler.Res); string(in.Args) != `"cba"` {
			t.Errorf("got %s", in.Args)
		}
	}
}

// Without a Redis at its address it does not start, says where, and no password.
func TestServeWithoutRedis(t *testing.T) {
	nobody := testkit.FreeAddress(t)
	for address, want := range map[string]string{
		nobody:                               nobody,
		"redis://me:secret@" + nobody + "/1": nobody,
		"mysql://me:secret@localhost":        "redis: want an address",
		"me:secret@localhost:6379":           "redis: want an address",
		"redis:/me:secret@localhost:6379":    "redis: want an address",
	} {
		ends(t, []string{"CABRANK_REDIS=" + address}, 1, want, "serve", "--listen", "127.0.0.1:0", "--log-format", "text")
	}
}
