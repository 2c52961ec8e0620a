//go:build real || soak

package real_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// probing is what a prober saw of a probe: Kubernetes asks every few seconds,
// this one as often as it can be held to a bound.
type probing struct {
	statuses map[int]int
	took     []time.Duration
}

// probe asks a probe every 50 ms until ctx ends.
func (c *Cabrank) probe(ctx context.Context, name string) (seen probing) {
	seen.statuses = map[int]int{}
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	client := http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-pause.C:
		}
		began := time.Now()
		status := 0
		if answer, err := client.Get("http://" + c.ProbesAddr + "/" + name); err == nil {
			status = answer.StatusCode
			answer.Body.Close()
		}
		seen.statuses[status]++
		seen.took = append(seen.took, time.Since(began))
	}
}

// saturation is a load that keeps every thread of every worker busy with CPU.
type saturation struct {
	calls  []time.Duration // how long each took, from the caller's side
	failed map[string]int
	probes probing
}

// mixedWorkers is a command that runs the example in Python for the first
// worker and the one in Ruby for the others, each with one thread.
func mixedWorkers(t *testing.T) []string {
	t.Helper()
	python, ruby := readLangExample(t, "python").worker, readLangExample(t, "ruby").worker
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
		ctx, cancel := context.WithTimeout(t.Context(), callBound)
		began := time.Now()
		_, err := client.Cpu(ctx, &workpb.CpuRequest{N: n})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		// The next one would take 1.6 times as long.
		if took := time.Since(began); took*13/10 >= work || n == 40 {
			return n
		}
	}
}

// saturate has more callers than there are slots call one after the other, with
// calls that compute for about so long, and watches readiness meanwhile.
func saturate(t *testing.T, c *Cabrank, callers int, work, lasts time.Duration) *saturation {
	t.Helper()
	client := workpb.NewWorkClient(dialLang(t, c.Addr))
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
	s.probes = c.probe(ctx, "readiness")
	running.Wait()
	slices.Sort(s.calls)
	slices.Sort(s.probes.took)
	return s
}

// wantNobodySick holds that saturation was taken for what it is (R6): no call
// failed, no worker was out of the rank for a moment, readiness was 200.
func (s *saturation) wantNobodySick(t *testing.T, c *Cabrank) {
	t.Helper()
	t.Logf("%d calls, median %v; %d probes, median %v, p99 %v, p99.9 %v, max %v", len(s.calls), middle(s.calls),
		len(s.probes.took), middle(s.probes.took), s.probes.took[len(s.probes.took)*99/100], s.probes.took[len(s.probes.took)*999/1000], s.probes.took[len(s.probes.took)-1])
	if len(s.failed) > 0 || len(s.calls) == 0 {
		t.Errorf("%d calls, failed by status: %v", len(s.calls), s.failed)
	}
	if len(s.probes.statuses) != 1 || s.probes.statuses[http.StatusOK] == 0 {
		t.Errorf("readiness by status: %v, want only 200", s.probes.statuses)
	}
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
