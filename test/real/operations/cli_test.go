//go:build real || soak

package operations_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The probes tell how far the start has come (startup and readiness by the
// first worker, liveness at once), and every listener says where it is.
func TestProbesFollowTheStart(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	worker := append([]string{"sh", "-c", `until [ -e "$0" ]; do sleep 0.02; done; exec "$@"`, gate}, harness.FaultWorker(t)...)
	c := harness.StartFault(t, worker, "--workers", "2", "--min-ready", "2")
	harness.WantProbes(t, c, map[string]int{"startup": 503, "readiness": 503, "liveness": 200, "nothing": 404})
	for _, addr := range []string{c.Addr, c.ProbesAddr, c.MetricsAddr} {
		_, port, err := net.SplitHostPort(addr)
		testkit.Want(t, err == nil && port != "0", "a listening line with the address %q", addr)
	}
	early := harness.GoIo(t.Context(), harness.Dial(t, c.Addr), "early", 0)
	c.WaitMetric("cabrank_queue_length", 1)

	testkit.Must(t, os.WriteFile(gate, nil, 0o600))
	(<-early).WantOK(t)
	c.WaitReady(harness.Patience)
	harness.WantProbes(t, c, map[string]int{"startup": 200, "readiness": 200, "liveness": 200})

	c.KillPID(c.WaitWorkers(2)) // one of two, both of which must be ready
	c.Wait(harness.Patience, "readiness to go", func() bool { return c.Probe("readiness") == http.StatusServiceUnavailable })
	harness.WantProbes(t, c, map[string]int{"startup": 200, "liveness": 200})
	c.WaitReady(harness.Patience)
}

// A port that is taken ends the start with one line that says by whom and what
// to do, and leaves nothing.
func TestTakenPortsAreNamed(t *testing.T) {
	holder := harness.StartCabrank(t, "--upstream", "127.0.0.1:1")
	free := "127.0.0.1:0"
	for _, test := range []struct {
		flag, listen, probes, metrics string
	}{
		{"--listen", holder.Addr, free, free},
		{"--probes", free, holder.ProbesAddr, free},
		{"--metrics", free, free, holder.MetricsAddr},
	} {
		t.Run(test.flag, func(t *testing.T) {
			p := harness.StartLine(t, harness.RunLine(t, harness.FaultWorker(t), "--listen", test.listen, "--probes", test.probes, "--metrics", test.metrics)...)
			p.WantExit(harness.Patience, 1)
			want := fmt.Sprintf("%s (pid %d)", holder.Name, holder.PID)
			line := p.Failure()
			testkit.Want(t, strings.Contains(line, want) && strings.HasSuffix(line, "choose another port with "+test.flag),
				"the last line is %q, want one that names %s and %s", line, want, test.flag)
			p.WaitNoneLeft(harness.Patience)
		})
	}
	holder.Stop()
}

// What cannot be right ends before anything is left running, with 2 and one
// line.
func TestWrongStartsEndWith2(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		says string
	}{
		{"program not found", []string{"--", "no-such-program"}, "no-such-program"},
		{"program not executable", []string{"--", "/dev/null"}, "/dev/null"},
		{"bad value", []string{"--workers", "many", "--", "true"}, `"many" is not a number`},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--log-level", "error"}, test.args...)
			p := harness.StartCLI(t, args...)
			p.WantRefusal(2)
			testkit.Want(t, strings.Contains(p.Failure(), test.says), "stderr is %q, want a line with %q", p.Log(), test.says)
			p.WaitNoneLeft(harness.Patience)
		})
	}
	// Which no log is about.
	harness.StartCLI(t, "run", "--wokers", "3", "--", "true").WantRefusal(2, "cabrank: unknown flag: --wokers; did you mean --workers?\n")
}

// On a terminal, or if told so, logs are text and the workers' lines have their
// name before them.
func TestTextForPeople(t *testing.T) {
	p := harness.StartLine(t, harness.RunLine(t, harness.FaultWorker(t, "-say", "hello"), "--log-format", "text", "--workers", "1")...)
	p.WaitLog(harness.Patience, "msg=listening addr=127.0.0.1:")
	p.WaitLog(harness.Patience, `msg="worker ready" worker=worker-1`)
	p.Wait(harness.Patience, "the worker's line", func() bool { return p.Output() == "worker-1 | hello\n" })
	p.StopBy(syscall.SIGTERM)
}

// Elsewhere each line of a worker says whose it is, also one that is JSON already,
// and whether it comes from stderr.
func TestJSONForPrograms(t *testing.T) {
	worker := append([]string{"sh", "-c", `echo '{"a":1}'; echo oops >&2; exec "$0" "$@"`}, harness.FaultWorker(t)...)
	c := harness.StartFault(t, worker, "--workers", "1").Booted(1)
	for _, want := range []string{`{"worker":"worker-1","a":1}`, `"level":"INFO","msg":"oops","worker":"worker-1","stream":"stderr"}`} {
		c.Wait(harness.Patience, want, func() bool { return strings.Contains(c.Output(), want+"\n") })
	}
}

// By default the log has a line for what happens to cabrank and its workers, and
// none for a call, however that ends.
func TestNoLinePerCall(t *testing.T) {
	const calls = 100
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1").Booted(1)
	before := c.Log()
	conn := harness.Dial(t, c.Addr)
	for range calls {
		harness.CallIo(t.Context(), conn, "1", 0).WantOK(t)
		got := callMethodCode(t.Context(), conn, "/no.Such/Method")
		testkit.Need(t, got == codes.Unimplemented, "%v", got)
	}
	c.WaitMetric("cabrank_calls_total", 2*calls)
	if after := c.Log(); after != before {
		t.Errorf("%d calls have left lines in the log:\n%s", 2*calls, strings.TrimPrefix(after, before))
	}
}

// Workers on loopback ports get the first free ones in their range, and a
// stranger on one of them gets no call (R19).
func TestStrangerOnAWorkersPort(t *testing.T) {
	first := testkit.FreePorts(t, 4)
	stranger, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
	testkit.Must(t, err)
	defer stranger.Close()
	c := harness.StartCabrank(t, append([]string{"--workers", "2", "--start-port", fmt.Sprint(first), "--"}, harness.FaultWorker(t)...)...).Booted(2)
	for _, line := range c.LogLines("worker ready") {
		testkit.Want(t, line.Text("address") != stranger.Addr().String(),
			"a worker is said to be ready at the stranger's address: %v", line)
	}
	load := harness.StartLoad(t, c.Addr, 4, time.Millisecond)
	load.WaitAnswered(t, "worker-1", 10)
	load.WaitAnswered(t, "worker-2", 10)
	load.WantNoFailure(t)
}
