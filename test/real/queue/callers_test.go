//go:build real || soak

package queue_test

import (
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// What a caller with an ordinary library sees: where its call was, its rate, and
// the end of a cycle. Other callers have shares and rates of their own.
func TestCallersAreTold(t *testing.T) {
	c := harness.StartCabrankEnv(t, []string{
		"CABRANK_EXPLAIN=true", "CABRANK_FAIR_KEY=metadata:x-tenant",
		"CABRANK_LIMITS_CALLS_PER_SECOND=0.1",
	}, append([]string{"--transport", "unix", "--workers", "1", "--"}, harness.FaultWorker(t)...)...)
	c.WaitWorkers(1)
	conn := harness.Dial(t, c.Addr)
	call := func(more ...string) (codes.Code, metadata.MD) {
		var trailer metadata.MD
		ctx := metadata.AppendToOutgoingContext(t.Context(), append(more, harness.CallIDKey, "1")...)
		_, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{}, grpc.Trailer(&trailer))
		return status.Code(err), trailer
	}
	code, trailer := call("x-tenant", "a")
	if worker, waited := trailer.Get("cabrank-worker"), trailer.Get("cabrank-queue-ms"); code != codes.OK ||
		len(worker) != 1 || worker[0] != "worker-1" || len(waited) != 1 {
		t.Errorf("an ordinary call: %v with %v", code, trailer)
	}
	code, trailer = call("x-tenant", "a")
	ms, err := strconv.Atoi(append(trailer.Get("grpc-retry-pushback-ms"), "none")[0])
	testkit.Want(t, code == codes.ResourceExhausted && err == nil && ms >= 1 && ms <= 12_000,
		"a call above the rate: %v with %v", code, trailer)
	if code, _ := call("x-tenant", "b"); code != codes.OK {
		t.Errorf("a call of another caller: %v", code)
	}
	if code, _ := call("x-tenant", "b", "x-cabrank-hops", "17"); code != codes.FailedPrecondition {
		t.Errorf("a call that has come through 17 cabranks: %v", code)
	}
	c.WaitMetric("cabrank_refusals_total", 1, "reason", "rate_limit")
	c.WaitMetric("cabrank_refusals_total", 1, "reason", "call_cycle")
}
