//go:build (real || soak) && linux

package workers_test

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The note says why a worker that runs does not serve, and so does the log.
func TestStatusSaysWhyAWorkerDoesNotServe(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1").AwaitReady(1)
	c.SignalTo(c.Status().Workers[0].PID, syscall.SIGSTOP)
	c.Await("the stop", func(s *harness.OperatorStatus) bool { return s.Workers[0].State == "stopped" })
	c.WantNote("stopped", "a signal has stopped it")
	c.SignalTo(c.Status().Workers[0].PID, syscall.SIGCONT)
	c.AwaitReady(1)
	text := c.Must("status")
	testkit.Want(t, !strings.Contains(text, "signal"), "a worker that serves has no trouble:\n%s", text)
	c.Stop()
	wantReasons(t, c, "worker takes no calls")

	// The server dies, the shell that has started it lives.
	script := `"$0" "$@" & echo "server $!"; wait; exec sleep 1000`
	shelled := harness.StartControlled(t, slices.Concat([]string{"sh", "-c", script}, harness.FaultWorker(t)), "--workers", "1").AwaitReady(1)
	shelled.KillPID(harness.ChildOf(t, shelled.Status().Workers[0].PID))
	shelled.Await("the end of the server", func(s *harness.OperatorStatus) bool { return s.Workers[0].State == "not serving" })
	shelled.WantNote("not serving", "nothing listens on ")
	shelled.Stop()
	wantReasons(t, shelled, "worker takes no calls")
}

func wantReasons(t *testing.T, c *harness.Controlled, msg string) {
	t.Helper()
	lines := c.LogLines(msg)
	for _, line := range lines {
		testkit.Want(t, line.Text("reason") != "", "%v has no reason", line)
	}
	testkit.Want(t, len(lines) != 0, "no line %q", msg)
}

// What a worker of a restart that was given up has done stands on no row of the
// worker that comes after it.
func TestStatusForgetsWorkersThatHaveGone(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1").AwaitReady(1)
	c.Command("restart", "--", "sh", "-c", "exit 7").WantExit(harness.Patience, 1)
	c.AwaitReady(1)
	c.Must("restart")
	s := c.Status()
	testkit.Need(t, len(s.Workers) == 1 && s.Workers[0].Name == "worker-2", "not in the place of the one that failed: %+v", s.Workers)
	text := c.Must("status")
	testkit.Want(t, regexp.MustCompile(`(?m)^worker-2 +ready .* 0$`).MatchString(text), "the row of worker-2:\n%s", text)
	n := c.Metric("cabrank_worker_restarts_total", "worker", "worker-2", "cause", "exit")
	testkit.Want(t, n >= 3, "%v restarts in the metrics, which forget nothing", n)
}
