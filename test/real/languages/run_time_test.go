//go:build soak

package languages_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// longSlots calls that compute at a time, in threads that share one interpreter,
// take half a minute also on a fast machine.
const longSlots = 5

// computeLong makes as many calls that compute as there are slots.
func computeLong(t *testing.T, conn *grpc.ClientConn, deadline time.Duration) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	failed := make([]error, longSlots)
	var calls sync.WaitGroup
	for i := range failed {
		calls.Go(func() {
			_, failed[i] = workpb.NewWorkClient(conn).Cpu(ctx, &workpb.CpuRequest{N: 40})
		})
	}
	calls.Wait()
	return failed
}

// R5, R6: a handler that computes for longer than max_run_time costs its worker,
// also when its caller has given up long ago; one that waits is left alone.
func TestRunTimeOfRealHandlers(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	const limit = time.Second
	for _, test := range []struct {
		name     string
		lang     string
		deadline time.Duration
		over     bool
	}{
		{"computes", "ruby", time.Minute, true},
		{"computes for nobody", "ruby", limit / 2, true},
		{"computes for nobody", "python", limit / 2, true},
		{"waits", "ruby", time.Minute, false},
	} {
		t.Run(test.name+" in "+test.lang, func(t *testing.T) {
			t.Parallel()
			args := slices.Concat([]string{"--workers", "1", "--slots", strconv.Itoa(longSlots), "--transport", "unix", "--"}, harness.ReadLangExample(t, test.lang).Worker)
			c := harness.StartCabrankEnv(t, append(harness.LangEnv(t), "CABRANK_MAX_RUN_TIME="+limit.String()), args...)
			c.WaitReady(harness.LangBound)
			conn := harness.Dial(t, c.Addr)
			if !test.over {
				// As long as a computing one would live, and longer.
				harness.CallIo(t.Context(), conn, "waits", 9*time.Second).WantOK(t)
				lines := c.LogLines("worker computes for too long, killed")
				testkit.Want(t, len(lines) == 0, "a handler that waits was taken for one that computes: %v", lines)
				return
			}
			for _, err := range computeLong(t, conn, test.deadline) {
				if test.deadline > limit {
					harness.WantStatus(t, err, codes.Unavailable, "cabrank: worker lost")
				}
			}
			c.WaitLog(harness.LangBound, "worker computes for too long, killed")
			c.Wait(harness.LangBound, "the restart", func() bool {
				return c.Metric("cabrank_worker_restarts_total", "cause", "run time") == 1
			})
		})
	}
}
