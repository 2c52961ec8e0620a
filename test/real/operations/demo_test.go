//go:build real || soak

package operations_test

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The demo that ends by itself: every worker gets some of twelve calls, and
// nothing is left running.
func TestDemoOnce(t *testing.T) {
	demo := harness.StartCLI(t, "demo", "--once")
	demo.WantExit(time.Minute, 0)
	wantDemoShare(t, demo)
	demo.WaitNoneLeft(harness.Patience)
}

// make demo runs the same binary; DEMO=once makes it end by itself. -n, because
// another build must not replace the binary under test.
func TestMakeDemoIsTheDemo(t *testing.T) {
	for once, want := range map[string]string{"": "bin/cabrank demo", "once": "bin/cabrank demo --once"} {
		planned, err := exec.Command("make", "-n", "-C", harness.Root(t), "demo", "DEMO="+once).Output()
		lines := strings.Split(strings.TrimSpace(string(planned)), "\n")
		if err != nil || !slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) == want }) {
			t.Errorf("make demo DEMO=%s: %v, no line %q in\n%s", once, err, want, planned)
		}
	}
}

// The first minute: the demo runs until Ctrl-C, and what it tells people to try
// works.
func TestDemoUntilInterrupt(t *testing.T) {
	demo := harness.StartCLI(t, "demo", "--listen", "127.0.0.1:0", "--metrics", "off", "--probes", "off")
	c := harness.Cabrank{Process: demo}
	addr := c.Listening("listening")
	for _, line := range []string{" demo call --addr ", "grpcurl -plaintext ", "Ctrl-C stops everything."} {
		testkit.Says(t, demo.Output(), line)
	}

	call := harness.StartCLI(t, "demo", "call", "--addr", addr, "-n", "12", "-c", "3")
	call.WantExit(harness.Patience, 0)
	if got := strings.Count(call.Output(), "\ncall "); got != 11 { // the first line has none before it
		t.Errorf("%d lines of calls after the first, want 11:\n%s", got, call.Output())
	}
	harness.StartLine(t, harness.Tool(t, "grpcurl"), "-plaintext", "-d", `{"name": "you"}`, addr, "cabrank.demo.v1.Greeter/SayHello").
		WantExit(harness.Patience, 0, "Hello, you!")
	demo.StopBy(syscall.SIGINT)
}

// wantDemoShare looks for twelve calls and a share for each of three workers.
func wantDemoShare(t *testing.T, demo *harness.Process) {
	t.Helper()
	calls, table, _ := strings.Cut(demo.Output(), "12 calls over one connection:\n")
	testkit.Equal(t, strings.Count(calls, "call "), 12, "lines of calls")
	for _, worker := range []string{"worker-1", "worker-2", "worker-3"} {
		testkit.Want(t, strings.Contains(table, worker), "no share of %s", worker)
	}
	if t.Failed() {
		t.Logf("the output:\n%s", demo.Output())
	}
}
