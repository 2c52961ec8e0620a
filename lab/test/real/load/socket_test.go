//go:build real || soak

package load_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/test/real/harness"
)

// socketLoad runs cabrank socket load and reads its result.
func socketLoad(t *testing.T, code int, url string, args ...string) (r lab.Result, counts map[string]int64) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "results")
	p := startSocketLoad(t, url, append(args, "--out", folder)...)
	p.WantExit(harness.Patience, code)
	r = resultIn(t, folder)
	counts = map[string]int64{}
	for _, c := range r.Record.Counts {
		counts[c.Name] = c.N
		testkit.Says(t, p.Output(), c.Name)
	}
	return r, counts
}

func startSocketLoad(t *testing.T, url string, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"socket", "load", url}, args...)...)
}

// Open and closed loops count every message, on our server and on the old one.
func TestSocketLoad(t *testing.T) {
	_, memory := startServe(t, "--test-functions")
	for name, url := range map[string]string{"memory": memory, "old": startOld(t)} {
		t.Run(name, func(t *testing.T) {
			r, counts := socketLoad(t, 0, url, "--call", "test.echo", "--args", `"{{.RequestNumber}}"`, "--connections", "5",
				"--rate", "200", "--warmup", "100ms", "--duration", "1s")
			n := r.Record.Due + r.Record.Warmup.Calls
			if r.Record.Due < 150 || r.Record.Calls.Answered.Count() != r.Record.Due || r.Record.Opened != 5 ||
				counts["CALL"] != n || counts["ACK"] != n || counts["RES"] != n || counts["EXP"]+counts["NACK"]+counts["lost with a connection"] != 0 {
				t.Errorf("%d due: %v", r.Record.Due, counts)
			}
			// A closed loop is judged on a busy machine, too: it sends no call late.
			_, counts = socketLoad(t, 0, url, "--call", "test.reverse", "--args", `"abc"`, "--callers", "20", "--connections", "4", "--duration", "500ms", "--fail", "errors<1%")
			testkit.Want(t, counts["RES"] >= 20 && counts["RES"] == counts["CALL"], "%v", counts)
		})
	}
}

// What fails is told by its kind, and by its code.
func TestSocketLoadFailures(t *testing.T) {
	server, url := startServe(t, "--test-functions", "--max-calls", "3")
	r, counts := socketLoad(t, 1, url, "--call", "test.delay", "--args", `"60000"`, "--callers", "5", "--timeout", "200ms", "--duration", "300ms")
	testkit.Want(t, counts["EXP"] >= 3 && counts["NACK"] >= 2 && counts["RES"] == 0 && len(r.Record.Failures) == 2,
		"%v, %+v", counts, r.Record.Failures)
	_, counts = socketLoad(t, 1, url, "--call", "test.echo", "--args", "1", "--callers", "1", "--duration", "100ms")
	testkit.Want(t, counts["RES"] != 0 && counts["RES"] == counts["of these, with an error"], "%v", counts)
	before := server.Metric("cabrank_socket_messages_total", "kind", "call")
	p := startSocketLoad(t, url, "--call", "test.delay", "--args", `"60000"`, "--callers", "2", "--timeout", "2s", "--duration", "300ms")
	server.WaitMetric("cabrank_socket_messages_total", before+2, "kind", "call")
	server.Signal(syscall.SIGKILL)
	p.WantExit(harness.Patience, 1, "lost")
}

// Mistakes end with one line and 2, before a call is made.
func TestSocketLoadMistakes(t *testing.T) {
	_, url := startServe(t, "--path", "/ws")
	for args, want := range map[string]string{
		"--callers 1 --duration 1s":                                "which function? give --call URI",
		"--call a --duration 1s":                                   "give one of --rate",
		"--call a --args abc --callers 1 --duration 1s":            "are no JSON",
		"--call a --connections 0 --callers 1 --duration 1s":       "--connections 0: want 1 to 10000",
		"--call a --callers 1 --duration 1s --fail often":          "--fail",
		"--call a --callers 1 --duration 1s --token x --header no": "--header",
	} {
		startSocketLoad(t, url, strings.Fields(args)...).WantRefusal(2, want)
	}
	p := startSocketLoad(t, strings.TrimSuffix(url, "/ws"), "--call", "a", "--callers", "1", "--duration", "1s")
	p.WantExit(harness.Patience, 2, "404 Not Found")
}
