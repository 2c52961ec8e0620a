//go:build real || soak

package workers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startTurning starts cabrank over three workers that turn calls away. The folder is
// for files with the names of those that take none.
func startTurning(t *testing.T) (c *harness.Controlled, folder string) {
	t.Helper()
	folder = t.TempDir()
	c = harness.StartControlled(t, []string{harness.OwnBinary(t), turningRole, "-every", folder}, "--workers", "3", "--min-ready", "3", "--slots", "4")
	c.WaitWorkers(3)
	return c, folder
}

// R4: a call that workers answer with GOAWAY below its stream ends after eight moves,
// and five callers with nothing else keep nobody's calls away from the workers.
func TestTurnedAwayCallsHarmNobody(t *testing.T) {
	c, _ := startTurning(t)
	const good, bad, calls = 6, 5, 2
	calm := time.Now()
	load := harness.StartLoad(t, c.Addr, good, harness.ShortWork)
	load.WaitAnswered(t, "", 100)
	each := time.Since(calm) / 100 // with all that this machine does beside
	began, before := time.Now(), len(load.Outcomes())
	var hostile sync.WaitGroup
	for caller := range bad {
		hostile.Go(func() { turnedCalls(t, c.Addr, caller, calls) })
	}
	hostile.Wait()
	took, beside := time.Since(began), len(load.Outcomes())-before
	load.WantNoFailure(t)
	t.Logf("%d such calls in %v; beside them %d others", bad*calls, took, beside)
	if most := int(took / each); beside < most/10 {
		t.Errorf("%d calls were answered in %v, of %d that could be", beside, took, most)
	}
	if moved := c.Metric("cabrank_refusals_total", "reason", "moved"); moved < 8*bad*calls || moved > 16*bad*calls {
		t.Errorf("%v moves, want 8 of each such call and some of others that it met", moved)
	}
	for _, msg := range []string{"worker keeps refusing calls and gets fewer at a time", "worker turns calls away and gets one only now and then"} {
		if lines := c.LogLines(msg); len(lines) > 0 {
			t.Errorf("what the calls do is taken for the worker's doing: %v", lines)
		}
	}
	c.Stop()
}

// turnedCalls makes calls one after the other that no worker looks at.
func turnedCalls(t *testing.T, addr string, caller, calls int) {
	t.Helper()
	conn := harness.Dial(t, addr)
	for call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
		got := harness.CallIo(ctx, conn, fmt.Sprintf("%s%d-%d", turned, caller, call), 0)
		cancel()
		harness.WantStatus(t, got.Err, codes.Unavailable, "cabrank: bad response from worker")
	}
}

// A worker that turns every call away is suspect, and who looks is told why. Its calls
// go to others, and with its first answer it is back.
func TestWorkerThatTurnsEverythingAwayIsSuspect(t *testing.T) {
	c, folder := startTurning(t)
	load := harness.StartLoad(t, c.Addr, 6, harness.ShortWork)
	load.WaitAnswered(t, "worker-1", 10)
	bad := filepath.Join(folder, "worker-1")
	testkit.Must(t, os.WriteFile(bad, nil, 0o600))
	c.Await("the suspicion", func(s *harness.OperatorStatus) bool { return s.Workers[0].State == "suspect" })
	c.WantNote("suspect", "it ends connections with calls on them that it has not looked at")
	for name, labels := range map[string][]string{
		"cabrank_worker_state": {"worker", "worker-1", "state", "suspect"},
		"cabrank_suspect":      {"worker", "worker-1"},
	} {
		if got := c.Metric(name, labels...); got != 1 {
			t.Errorf("%s is %v", name, got)
		}
	}
	line := c.WaitLog(harness.Patience, "worker turns calls away and gets one only now and then")
	if !strings.Contains(line, "it ends connections with calls on them") {
		t.Errorf("no reason: %s", line)
	}
	load.WaitAnswered(t, "", 100)
	testkit.Must(t, os.Remove(bad))
	c.Await("its return", func(s *harness.OperatorStatus) bool { return s.Workers[0].State == "ready" })
	c.WaitLog(harness.Patience, "worker takes calls again")
	load.WaitAnswered(t, "worker-1", 10)
	load.WantNoFailure(t)
	c.Stop()
}
