//go:build real || soak

package workers_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// saturation is a load that keeps every thread of every worker busy with CPU.
type saturation struct {
	calls  []time.Duration // how long each took, from the caller's side
	failed map[string]int
	probes harness.Probing
}

// mixedWorkers is a command that runs the example in Python for the first
// worker and the one in Ruby for the others, each with one thread.
func mixedWorkers(t *testing.T) []string {
	t.Helper()
	python, ruby := harness.ReadLangExample(t, "python").Worker, harness.ReadLangExample(t, "ruby").Worker
	script := `n=$1; shift
case $CABRANK_WORKER in
worker-1) POOL_SIZE=1 exec "$1" "$2" ;;
*) shift "$n"; exec "$@" ;;
esac`
	return slices.Concat([]string{"sh", "-c", script, "sh", "2"}, python, ruby)
}

// cpuWork finds the argument for which a call computes for about so long.
func cpuWork(t *testing.T, client workpb.WorkClient, work time.Duration) uint32 {
	t.Helper()
	for n := uint32(20); ; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
		began := time.Now()
		_, err := client.Cpu(ctx, &workpb.CpuRequest{N: n})
		cancel()
		testkit.Must(t, err)
		// The next one would take 1.6 times as long.
		if took := time.Since(began); took*13/10 >= work || n == 40 {
			return n
		}
	}
}

// saturate has more callers than there are slots call one after the other, with
// calls that compute for about so long, and watches readiness meanwhile.
func saturate(t *testing.T, c *harness.Cabrank, callers int, work, lasts time.Duration) *saturation {
	t.Helper()
	client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
	n := cpuWork(t, client, work)
	s := &saturation{failed: map[string]int{}}
	var mu sync.Mutex
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, err := client.Cpu(t.Context(), &workpb.CpuRequest{N: n})
				mu.Lock()
				if err != nil {
					s.failed[err.Error()]++
				} else {
					s.calls = append(s.calls, time.Since(began))
				}
				mu.Unlock()
			}
		})
	}
	s.probes = c.TimedProbe(ctx, 50*time.Millisecond, 2*time.Second, "readiness")
	running.Wait()
	slices.Sort(s.calls)
	slices.Sort(s.probes.Took)
	return s
}

// wantNobodySick holds that saturation was taken for what it is (R6): no call
// failed, no worker was out of the rank for a moment, readiness was 200.
func (s *saturation) wantNobodySick(t *testing.T, c *harness.Cabrank) {
	t.Helper()
	t.Logf("%d calls, median %v; %d probes, median %v, p99 %v, p99.9 %v, max %v", len(s.calls), middle(s.calls),
		len(s.probes.Took), middle(s.probes.Took), s.probes.Took[len(s.probes.Took)*99/100], s.probes.Took[len(s.probes.Took)*999/1000], s.probes.Took[len(s.probes.Took)-1])
	testkit.Want(t, len(s.failed) == 0 && len(s.calls) != 0, "%d calls, failed by status: %v", len(s.calls), s.failed)
	testkit.Want(t, len(s.probes.Statuses) == 1 && s.probes.Statuses[http.StatusOK] != 0,
		"readiness by status: %v, want only 200", s.probes.Statuses)
	for _, msg := range []string{"worker takes no calls", "worker is silent and gets no new calls", "worker hung, killed", "worker ended"} {
		if lines := c.LogLines(msg); len(lines) > 0 {
			t.Errorf("%d times %q, the first %v", len(lines), msg, lines[0])
		}
	}
}

func middle(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
