//go:build (real || soak) && linux

package workers_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A container counts OS threads as processes, so workers cost cabrank none: with 24
// of them it has as few as with one.
func TestWorkersCostNoThreads(t *testing.T) {
	const workers = 24
	t.Setenv("GOMAXPROCS", "2") // a machine with more has more threads, whatever the workers
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", strconv.Itoa(workers)).Booted(workers)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/status")
	testkit.Must(t, err)
	threads := 0
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "Threads:"); ok {
			threads, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	t.Logf("%d threads", threads)
	if threads == 0 || threads >= workers {
		t.Errorf("%d threads with %d workers", threads, workers)
	}
	c.Stop()
}

// What does not let a worker be started is said with what to look at.
func TestStartWithoutDescriptors(t *testing.T) {
	few := []string{"/bin/sh", "-c", `ulimit -n 17; exec "$0" "$@"`}
	p := harness.StartLine(t, append(few, harness.RunLine(t, harness.FaultWorker(t), "--workers", "2")...)...)
	if code := p.ExitCode(harness.Patience); code == 0 {
		t.Error("it has started")
	}
	if got := p.Failure(); !strings.HasSuffix(got, "too many open files: no more may be opened by this process, see ulimit -n") {
		t.Errorf("got %q\n%s", got, p.Log())
	}
}
