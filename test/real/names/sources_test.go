//go:build real || soak

package names_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// R15: one host that takes as many connections as it gets, and leaves them idle,
// does not close the door for others.
func TestIdleHostBesideOthers(t *testing.T) {
	const limit, hoarded, newcomers = "400", 500, 100
	c := harness.StartCabrankEnv(t, []string{"CABRANK_LIMITS_CONNECTIONS=" + limit}, "--workers", "1", "--transport", "unix",
		"--", harness.CabrankBinary(t), "demo", "worker")
	c.WaitReady(harness.Patience)
	opening := harness.NewArms().Out.Bytes()
	dialer := net.Dialer{Timeout: harness.Patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range hoarded {
		nc, err := dialer.DialContext(t.Context(), "tcp", c.Addr)
		if err != nil {
			t.Skipf("no connection from another address: %v", err)
		}
		t.Cleanup(func() { nc.Close() })
		if _, err := nc.Write(opening); err != nil {
			continue // it was turned away
		}
	}
	failed := 0
	for range newcomers {
		if err := callOnAFreshConnection(t, c.Addr); err != nil {
			failed++
			t.Logf("a newcomer's call failed: %v", err)
		}
	}
	testkit.Want(t, failed == 0, "%d of %d newcomers' calls failed", failed, newcomers)
	t.Logf("%.0f connections made room", c.Metric("cabrank_connections_ended_total", "side", "caller", "reason", "make_room"))
}

// callOnAFreshConnection makes a call whose connection stays until the test ends.
func callOnAFreshConnection(t *testing.T, addr string) error {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = demopb.NewGreeterClient(conn).SayHello(ctx, &demopb.HelloRequest{Name: "new"}, grpc.WaitForReady(true))
	return err
}
