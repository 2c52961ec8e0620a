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
	if err := greet(t, second); status.Code(err) != codes.Unavailable {
		t.Errorf("one too many: %v, want UNAVAILABLE", err)
	}
	if err := greet(t, first); err != nil {
		t.Errorf("the one that was there: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := greet(t, second, grpc.WaitForReady(true)); err != nil {
		t.Errorf("with room again: %v", err)
	}
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
	if door.Opened() < 3 {
		t.Error("connections do not end for their age")
	}
	c.Stop()
}
