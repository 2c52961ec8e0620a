//go:build real || soak

package operations_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// listen: HOST:PORT shared: two on one port; one stops, and callers that never pause
// see nothing of it, neither those that stay nor those that connect anew for every
// call (R17).
func TestTwoOnOnePort(t *testing.T) {
	flags := slices.Concat([]string{"--transport", "unix", "--workers", "2", "--slots", "8", "--"}, harness.FaultWorker(t))
	first := harness.StartCabrank(t, append([]string{"--listen", "localhost:0 shared"}, flags...)...).Booted(2)
	second := harness.StartCabrank(t, append([]string{"--listen", first.Addr + " shared"}, flags...)...).Booted(2)
	var loads []*harness.Load
	for range 20 { // connections: the kernel deals them out
		loads = append(loads, harness.StartLoad(t, first.Addr, 1, harness.ShortWork))
	}
	for _, l := range loads {
		l.WaitAnswered(t, "", 3)
	}
	fresh := harness.StartLoop(t, 8, func(ctx context.Context) error { return callAnew(ctx, first.Addr) })
	fresh.WaitMore(20)
	first.Stop()
	fresh.WaitMore(20)
	fresh.WantNoFailure()
	calls := 0
	for _, l := range loads {
		l.WaitAnswered(t, "", 3)
		calls += len(l.WantNoFailure(t))
	}
	testkit.Want(t, len(first.Taken()) != 0 && len(second.Taken()) != 0,
		"of %d calls the first took %d, the second %d", calls, len(first.Taken()), len(second.Taken()))
}

// callAnew makes a call over a connection of its own.
func callAnew(ctx context.Context, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithNoProxy(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, harness.CallBound)
	defer cancel()
	return harness.CallIo(limited, conn, "fresh", 0).Err
}
