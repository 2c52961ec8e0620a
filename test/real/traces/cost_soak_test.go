//go:build soak && linux

package traces_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What spans cost of a call's CPU, and how much memory: 1,000 calls a second, in turns without
// spans, with those of one call in a hundred, and with those of all.
func TestCostOfTraces(t *testing.T) {
	const rounds, seconds, rate = 5, 6, 1000
	modes := []string{"", ", sample: 0.01", ", sample: 1"}
	var scenes []*scene
	for _, tracing := range modes {
		s := newScene(t, tracing, "slots: 50\n")
		s.spans.Instead(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		scenes = append(scenes, s)
	}
	costs := make([][]float64, len(modes))
	for range rounds {
		for i, s := range scenes {
			before := cpuOf(t, s.PID)
			s.pace(t, rate, seconds*rate)
			costs[i] = append(costs[i], (cpuOf(t, s.PID)-before).Seconds()/(seconds*rate)*1e6)
		}
	}
	median := func(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
	off := median(costs[0])
	for i, s := range scenes {
		t.Logf("%-14s %5.1f µs of CPU a call, x %.3f; at most %.1f MB; %.0f spans exported, %.0f dropped", strings.TrimPrefix(modes[i], ", "), median(costs[i]), median(costs[i])/off,
			float64(s.PeakMemory())/(1<<20), s.Metric("cabrank_spans_total", "result", "exported"), s.Metric("cabrank_spans_total", "result", "queue_full"))
	}
	if all := median(costs[2]); all > 2*off {
		t.Errorf("all spans: %.1f µs a call, without %.1f", all, off)
	}
}

// pace makes n calls, so many a second, whether others have ended or not.
func (s *scene) pace(t *testing.T, rate, n int) {
	t.Helper()
	var calling sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for range n {
		<-tick.C
		calling.Go(func() {
			err := s.call(t, 0)
			testkit.Want(t, err == nil, "%v", err)
		})
	}
	calling.Wait()
}

// cpuOf is the CPU time that a process has used, in steps of 10 ms.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	testkit.Must(t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	testkit.Must(t, err)
	system, err := strconv.Atoi(fields[12])
	testkit.Must(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}
