//go:build real

package real_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// runToEnd runs a command that ends by itself.
func runToEnd(t *testing.T, args ...string) (p *Process, code int) {
	t.Helper()
	p = StartProcess(t, nil, cabrankBinary(t), args...)
	code = p.ExitCode(patience)
	return p, code
}

// The probes tell how far the start has come (startup and readiness by the
// first worker, liveness at once), and every listener says where it is.
func TestProbesFollowTheStart(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	worker := append([]string{"sh", "-c", `until [ -e "$0" ]; do sleep 0.02; done; exec "$@"`, gate}, faultWorker(t)...)
	c := startFault(t, worker, "--workers", "2", "--min-ready", "2")
	wantProbes(t, c, map[string]int{"startup": 503, "readiness": 503, "liveness": 200, "nothing": 404})
	for _, addr := range []string{c.Addr, c.ProbesAddr, c.MetricsAddr} {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "0" {
			t.Errorf("a listening line with the address %q", addr)
		}
	}
	early := make(chan outcome, 1)
	go func() { early <- callIo(t.Context(), dialLang(t, c.Addr), "early", 0) }()
	c.waitMetric("cabrank_queue_length", 1)

	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-early; got.err != nil {
		t.Errorf("a call from before the first worker: %v", got.err)
	}
	c.WaitReady(patience)
	wantProbes(t, c, map[string]int{"startup": 200, "readiness": 200, "liveness": 200})

	c.kill(c.waitWorkers(2)) // one of two, both of which must be ready
	c.wait(patience, "readiness to go", func() bool { return c.Probe("readiness") == http.StatusServiceUnavailable })
	wantProbes(t, c, map[string]int{"startup": 200, "liveness": 200})
	c.WaitReady(patience)
	c.Stop()
}

func wantProbes(t *testing.T, c *Cabrank, want map[string]int) {
	t.Helper()
	for name, status := range want {
		if got := c.Probe(name); got != status {
			t.Errorf("/%s answers %d, want %d", name, got, status)
		}
	}
}

// A port that is taken ends the start with one line that says by whom and what
// to do, and leaves nothing.
func TestTakenPortsAreNamed(t *testing.T) {
	holder := StartCabrank(t, "--upstream", "127.0.0.1:1")
	free := "127.0.0.1:0"
	for _, test := range []struct {
		flag, listen, probes, metrics string
	}{
		{"--listen", holder.Addr, free, free},
		{"--probes", free, holder.ProbesAddr, free},
		{"--metrics", free, free, holder.MetricsAddr},
	} {
		t.Run(test.flag, func(t *testing.T) {
			args := slices.Concat([]string{"run", "--listen", test.listen, "--probes", test.probes, "--metrics", test.metrics,
				"--transport", "unix", "--"}, faultWorker(t))
			p, code := runToEnd(t, args...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			want := fmt.Sprintf("%s (pid %d)", holder.name, holder.PID)
			line := lineWith(p.Log(), "cabrank: port ")
			if !strings.Contains(line, want) || !strings.HasSuffix(line, "choose another port with "+test.flag) {
				t.Errorf("the last line is %q, want one that names %s and %s", line, want, test.flag)
			}
			p.WaitNoneLeft(3 * time.Second)
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
		{"bad value", []string{"--workers", "many", "--", "true"}, `"many" is not a whole number`},
		{"unknown flag", []string{"--wokers", "3", "--", "true"}, "did you mean --workers?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--log-level", "error"}, test.args...)
			p, code := runToEnd(t, args...)
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if got := strings.Count(p.Log(), "\n"); got != 1 || !strings.HasPrefix(p.Log(), "cabrank: ") || !strings.Contains(p.Log(), test.says) {
				t.Errorf("stderr is %q, want one line with %q", p.Log(), test.says)
			}
			p.WaitNoneLeft(3 * time.Second)
		})
	}
}

// On a terminal, or if told so, logs are text and the workers' lines have their
// name before them.
func TestTextForPeople(t *testing.T) {
	args := slices.Concat([]string{"run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--log-format", "text",
		"--workers", "1", "--transport", "unix", "--"}, faultWorker(t, "-say", "hello"))
	p := StartProcess(t, nil, cabrankBinary(t), args...)
	p.WaitLog(patience, "msg=listening addr=127.0.0.1:")
	p.WaitLog(patience, `msg="worker ready" worker=worker-1`)
	p.wait(patience, "the worker's line", func() bool { return p.Output() == "worker-1 | hello\n" })
	p.Signal(syscall.SIGTERM)
	if code := p.ExitCode(stopBound); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	p.WaitNoneLeft(3 * time.Second)
}

// By default the log has a line for what happens to cabrank and its workers, and
// none for a call, however that ends.
func TestNoLinePerCall(t *testing.T) {
	const calls = 100
	c := startFault(t, faultWorker(t), "--workers", "1")
	c.waitWorkers(1)
	before := c.Log()
	conn := dialLang(t, c.Addr)
	for range calls {
		if got := callIo(t.Context(), conn, "1", 0); got.err != nil {
			t.Fatal(got.err)
		}
		if got := callMethodCode(t.Context(), conn, "/no.Such/Method"); got != codes.Unimplemented {
			t.Fatal(got)
		}
	}
	c.waitMetric("cabrank_calls_total", 2*calls)
	if after := c.Log(); after != before {
		t.Errorf("%d calls have left lines in the log:\n%s", 2*calls, strings.TrimPrefix(after, before))
	}
	c.Stop()
}

// Workers on loopback ports get the first free ones in their range, and a
// stranger on one of them gets no call (R19).
func TestStrangerOnAWorkersPort(t *testing.T) {
	first := freePorts(t, 4)
	stranger, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	args := append([]string{"--workers", "2", "--start-port", fmt.Sprint(first), "--"}, faultWorker(t)...)
	c := StartCabrank(t, args...)
	c.waitWorkers(2)
	for _, line := range c.LogLines("worker ready") {
		if line.Text("address") == stranger.Addr().String() {
			t.Errorf("a worker is said to be ready at the stranger's address: %v", line)
		}
	}
	load := startLoad(t, c.Addr, 4, time.Millisecond)
	load.waitAnswered(t, "worker-1", 10)
	load.waitAnswered(t, "worker-2", 10)
	if failed := failures(load.stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].err)
	}
	c.Stop()
}
