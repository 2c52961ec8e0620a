//go:build (real || soak) && linux

package workers_test

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	status := testkit.ReadFile(t, "/proc/"+strconv.Itoa(c.PID)+"/status")
	threads := 0
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "Threads:"); ok {
			threads, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	t.Logf("%d threads", threads)
	testkit.Want(t, threads != 0 && threads < workers, "%d threads with %d workers", threads, workers)
}

// What does not let a worker be started is said with what to look at.
func TestStartWithoutDescriptors(t *testing.T) {
	few := []string{"/bin/sh", "-c", `ulimit -n 17; exec "$0" "$@"`}
	p := harness.StartLine(t, append(few, harness.RunLine(t, harness.FaultWorker(t), "--workers", "2")...)...)
	testkit.Want(t, p.ExitCode(harness.Patience) != 0, "it has started")
	if got := p.Failure(); !strings.HasSuffix(got, "too many open files: no more may be opened by this process, see ulimit -n") {
		t.Errorf("got %q\n%s", got, p.Log())
	}
}

// R19: where /proc shows processes only, as with systemd's ProcSubset=pid, or
// nothing at all, healthy workers serve, are replaced and end like elsewhere. Where
// nobody can tell whose a listener is, one line of the log says so.
func TestHiddenProc(t *testing.T) {
	for name, test := range map[string]struct {
		mount string
		blind int
	}{
		"processes only": {"mount -t proc -o subset=pid proc /proc", 0},
		"nothing":        {"mount -t tmpfs none /proc", 1},
	} {
		for _, transport := range []string{"tcp", "unix"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				alone := slices.Concat(harness.PIDNamespace(t), []string{"sh", "-c", test.mount + ` && exec "$0" "$@"`})
				if out, err := exec.Command(alone[0], append(alone[1:], "true")...).CombinedOutput(); err != nil {
					t.Skipf("this machine mounts no such /proc: %s", out)
				}
				c := harness.StartControlledBy(t, alone, "--transport", transport, "--workers", "2", "--boot-timeout", "30s")
				c.AwaitReady(2)
				harness.CallIo(t.Context(), harness.Dial(t, c.Listening("listening")), "1", 0).WantOK(t)
				c.Must("restart")
				if n := len(c.LogLines("worker ended")); n > 0 {
					t.Errorf("%d workers have ended", n)
				}
				c.SignalTo(harness.ChildOf(t, c.PID), syscall.SIGTERM)
				c.WantExit(harness.StopBound, 0)
				c.WaitNoneLeft(harness.Patience)
				// Looking follows readiness: at the end all is said.
				if n := len(c.LogLines("cannot check which process owns a port; trusting whatever answers at the worker's address")); n != test.blind {
					t.Errorf("%d lines about listeners that cannot be checked, want %d", n, test.blind)
				}
			})
		}
	}
}

// In a container cabrank is PID 1, which nobody else is there to help: it reaps
// every orphan, ends on SIGTERM with 0, and leaves nothing (R17, R18).
func TestAsPID1(t *testing.T) {
	worker := append([]string{"sh", "-c", `i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; exec "$0" "$@"`}, harness.FaultWorker(t)...)
	p := harness.StartLine(t, append(harness.PIDNamespace(t), harness.RunLine(t, worker, "--workers", "1")...)...)
	p.WaitLog(harness.Patience, "worker ready")
	c := harness.Cabrank{Process: p}
	harness.CallIo(t.Context(), harness.Dial(t, c.Listening("listening")), "1", 0).WantOK(t)
	first := harness.ChildOf(t, p.PID)
	testkit.Eventually(t, harness.Patience, "no zombie under PID 1", func() bool { return zombiesOf(first) == 0 })
	c.SignalTo(first, syscall.SIGTERM)
	p.WantExit(harness.StopBound, 0)
	p.WaitNoneLeft(harness.Patience)
}
