//go:build real || soak

package queue_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
	"github.com/cabrank/cabrank/test/real/oneslot"
)

// What is marked idempotent runs again after a failure on its list, as often as
// allowed; anything else runs once.
func TestRetriesByMethod(t *testing.T) {
	rules := `CABRANK_METHODS={"/cabrank.example.v1.Work/Fail": {idempotent: true, retries: 2, retry_on: [UNAVAILABLE]}}`
	example := harness.ReadLangExample(t, "go")
	c := harness.StartCabrankEnv(t, append(harness.LangEnv(t), rules), append([]string{"--workers", "1", "--"}, example.Worker...)...)
	c.WaitReady(harness.LangBound)
	client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
	runs := 0
	for _, call := range []struct {
		code codes.Code
		runs int
	}{{codes.Unavailable, 3}, {codes.Aborted, 1}, {codes.Unavailable, 3}} {
		ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
		var trailer metadata.MD
		_, err := client.Fail(ctx, &workpb.FailRequest{Code: uint32(call.code), Message: "no"}, grpc.Trailer(&trailer))
		cancel()
		testkit.Want(t, status.Code(err) == call.code && status.Convert(err).Message() == "no", "got %v, want the worker's own answer", err)
		runs += call.runs
		if got := trailer.Get("x-executions"); !slices.Equal(got, []string{strconv.Itoa(runs)}) {
			t.Errorf("after a call that fails with %v the worker has run %v, want %d", call.code, got, runs)
		}
	}
	c.WaitMetric("cabrank_retries_total", 4, "reason", "status")
}

// One worker stalls for seconds now and then. A second attempt elsewhere, made
// only where a slot is free, spares callers that; without it they feel it.
func TestHedgesAroundAStallingWorker(t *testing.T) {
	const stall = 4 * time.Second
	slowest := func(t *testing.T, env ...string) (longest time.Duration, denied float64) {
		t.Helper()
		s := startOneSlots(t, 4, oneSlotOptions{
			worker: []string{"-stall", stall.String(), "-stalls", "worker-1", "-stall-every", "8"}, env: env,
		})
		trial := oneslot.Trial{Calls: constant(200, 15*time.Millisecond, 5*time.Millisecond, oneslot.Call{})}
		outcomes := s.try(&trial)
		denied = s.Metric("cabrank_hedges_total", "result", "no_slot") + s.Metric("cabrank_hedges_total", "result", "no_budget")
		hedged := s.Metric("cabrank_hedges_total")
		testkit.Want(t, hedged-denied <= 50, "%v hedges for 200 calls", hedged)
		f := s.judge(trial, outcomes)
		testkit.Want(t, f.InTime == len(outcomes), "calls by their end: %v", f.Statuses)
		took, _ := tookBy(outcomes, make([]int, len(outcomes)), 0)
		return took[len(took)-1], denied
	}
	t.Run("without", func(t *testing.T) {
		if got, _ := slowest(t); got < stall {
			t.Errorf("the slowest call took %v: no worker has stalled, so the test proves nothing", got)
		}
	})
	t.Run("with", func(t *testing.T) {
		rules := `CABRANK_METHODS={"` + oneslot.Method + `": {idempotent: true, hedge_after: 100ms}}`
		// On a busy machine the others may be late as well, and no slot be free.
		got, denied := slowest(t, rules)
		for tries := 1; got > stall*3/4 && denied > 0 && tries < 3; tries++ {
			got, denied = slowest(t, rules)
		}
		testkit.Want(t, got <= stall*3/4, "the slowest call took %v although one worker alone stalls; %v hedges denied", got, denied)
	})
}
