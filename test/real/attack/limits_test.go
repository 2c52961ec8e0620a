//go:build real || soak

package attack_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// limitedGreeter starts cabrank with one demo worker and the given limits, and
// returns a caller of its own connection.
func limitedGreeter(t *testing.T, limits ...string) (c *harness.Cabrank, dial func() (demopb.GreeterClient, *grpc.ClientConn)) {
	t.Helper()
	c = harness.StartCabrankEnv(t, limits, "--workers", "1", "--", harness.CabrankBinary(t), "demo", "worker", "--work", "1ms")
	c.WaitReady(harness.Patience)
	return c, func() (demopb.GreeterClient, *grpc.ClientConn) {
		conn := harness.Dial(t, c.Addr)
		return demopb.NewGreeterClient(conn), conn
	}
}

func greet(t *testing.T, greeter demopb.GreeterClient, opts ...grpc.CallOption) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	_, err := greeter.SayHello(ctx, &demopb.HelloRequest{Name: "limits"}, opts...)
	return err
}

// A gRPC caller that is one too many fails at once with UNAVAILABLE, and is
// served, by itself, when another has left.
func TestConnectionLimitForGRPC(t *testing.T) {
	c, dial := limitedGreeter(t, "CABRANK_LIMITS_CONNECTIONS=1")
	first, conn := dial()
	testkit.Must(t, greet(t, first))
	second, _ := dial()
	err := greet(t, second)
	testkit.Want(t, status.Code(err) == codes.Unavailable, "one too many: %v, want UNAVAILABLE", err)
	err = greet(t, first)
	testkit.Want(t, err == nil, "the one that was there: %v", err)
	testkit.Must(t, conn.Close())
	err = greet(t, second, grpc.WaitForReady(true))
	testkit.Want(t, err == nil, "with room again: %v", err)
	c.Stop()
}

// A gRPC caller never notices that its connections end for their age or for
// being idle: no call fails, whenever it comes.
func TestConnectionsEndUnnoticed(t *testing.T) {
	c, dial := limitedGreeter(t, "CABRANK_LIMITS_IDLE_TIMEOUT=1s", "CABRANK_LIMITS_CONNECTION_AGE=2s")
	door := harness.Tap(t, c.Addr)
	c.Addr = door.Addr
	greeter, _ := dial()
	calls := 0
	for began := time.Now(); time.Since(began) < 2*harness.Patience && door.Opened() < 3; calls++ {
		if err := greet(t, greeter); err != nil {
			t.Fatalf("call %d, after %d GOAWAY: %v", calls, door.GoAways(), err)
		}
	}
	t.Logf("%d calls, %d GOAWAY, %d connections", calls, door.GoAways(), door.Opened())
	testkit.Want(t, door.Opened() >= 3, "connections do not end for their age")
	c.Stop()
}

// steadyPause is between two calls of a steady caller, so that it does not take
// the processor from what is tested.
const steadyPause = 5 * time.Millisecond

// 10,000 idle connections cost a bounded amount of memory each and hold no
// buffer, another caller never notices them, and nothing is left of them.
func TestIdleConnections(t *testing.T) {
	c := harness.StartCabrank(t, "--workers", "1", "--slots", "20", "--",
		harness.CabrankBinary(t), "demo", "worker", "--work", "1ms")
	c.WaitReady(harness.Patience)
	good := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
	testkit.Must(t, greet(t, good))
	kib, threads := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines")
	buffered, files := c.Metric("cabrank_buffered_bytes"), c.Metric("process_open_fds")

	caller := startSteady(t, good)
	idle := harness.GatherCrowd(t, c)
	n := len(idle.Conns)
	caller.WaitMore(100)
	testkit.Eventually(t, harness.Patience, "the crowd's buffers to come back", func() bool {
		return c.Metric("cabrank_buffered_bytes") <= buffered
	})
	each := float64(harness.RSSKiB(t, c.PID)-kib) / float64(n)
	t.Logf("%d connections, %.1f KiB each", n, each)
	testkit.Want(t, each <= harness.MostIdle, "%.1f KiB for each connection, want at most %d", each, harness.MostIdle)

	idle.Leave()
	caller.WaitMore(100)
	caller.WantNoFailure()
	testkit.Eventually(t, harness.Patience, "buffers, files and goroutines to be those of before", func() bool {
		return c.Metric("cabrank_buffered_bytes") <= buffered && c.Metric("process_open_fds") <= files+5 &&
			c.Metric("go_goroutines") <= threads+5
	})
	served, all := c.Metric("cabrank_calls_total", "code", "OK"), c.Metric("cabrank_calls_total")
	testkit.Want(t, served == all && served >= float64(n/2),
		"%v of %v calls were served, want all, and one for every second connection of %d", served, all, n)
	testkit.Equal(t, c.Metric("cabrank_connections_ended_total"), 0, "connections that cabrank ended itself")
	c.Stop()
	if n < harness.CrowdSize {
		t.Skipf("passed with %d connections only: the limit on open files does not allow %d", n, harness.CrowdSize)
	}
}

// startSteady starts a caller that makes one call after the other.
func startSteady(t *testing.T, greeter demopb.GreeterClient) *harness.Loop {
	t.Helper()
	return harness.StartLoop(t, 1, func(context.Context) error {
		<-time.After(steadyPause)
		return greet(t, greeter)
	})
}
