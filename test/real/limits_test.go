//go:build real

package real_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// limitedGreeter starts cabrank with one demo worker and the given limits, and
// returns a caller of its own connection.
func limitedGreeter(t *testing.T, limits ...string) (c *Cabrank, dial func() (demopb.GreeterClient, *grpc.ClientConn)) {
	t.Helper()
	c = StartCabrankEnv(t, limits, "--workers", "1", "--", cabrankBinary(t), "demo", "worker", "--work", "1ms")
	c.WaitReady(patience)
	return c, func() (demopb.GreeterClient, *grpc.ClientConn) {
		conn, err := grpc.NewClient(c.Addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return demopb.NewGreeterClient(conn), conn
	}
}

func greet(t *testing.T, greeter demopb.GreeterClient, opts ...grpc.CallOption) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := greeter.SayHello(ctx, &demopb.HelloRequest{Name: "limits"}, opts...)
	return err
}

// A gRPC caller that is one too many fails at once with UNAVAILABLE, and is
// served, by itself, when another has left.
func TestConnectionLimitForGRPC(t *testing.T) {
	c, dial := limitedGreeter(t, "CABRANK_LIMITS_CONNECTIONS=1")
	first, conn := dial()
	if err := greet(t, first); err != nil {
		t.Fatal(err)
	}
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
	door := tap(t, c.Addr)
	c.Addr = door.addr
	greeter, _ := dial()
	calls := 0
	for began := time.Now(); time.Since(began) < patience && door.goAways() < 6; calls++ {
		if err := greet(t, greeter); err != nil {
			t.Fatalf("call %d, after %d GOAWAY: %v", calls, door.goAways(), err)
		}
	}
	t.Logf("%d calls, %d GOAWAY, %d connections", calls, door.goAways(), door.opened())
	if door.opened() < 3 {
		t.Errorf("%d connections in all", door.opened())
	}
	c.Stop()
}
