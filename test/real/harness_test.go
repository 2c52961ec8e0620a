//go:build real || soak

// Package real_test holds the tests against real programs: the built binary,
// workers and clients in several languages, the interop suite of grpc-go. Run
// them by `make test-real`, which builds and installs what they need.
//
// Start with StartCabrank for cabrank itself and StartProcess for any other
// program; both clean up after themselves. What a test waits for is an event
// (WaitLog, WaitReady, testkit.Eventually), never a time.
package real_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopBound is how long a stop by SIGTERM may take: drain_timeout and
// stop_timeout at their defaults (20 s, 5 s), and some for a busy machine.
const stopBound = 30 * time.Second

// Cabrank is a running `cabrank run`.
//
// Life: made by StartCabrank, which returns when all its addresses are known;
// ended by Stop, Kill or the end of the test, which stops it and holds it to
// the same promises as Stop.
type Cabrank struct {
	*Process

	Addr        string // where callers connect, HOST:PORT
	ProbesAddr  string // empty if off
	MetricsAddr string // empty if off

	ended bool // by Stop or Kill: the end of the test has nothing to ask
}

// StartCabrank starts `cabrank run ARGS…` and waits until it listens. Unless
// ARGS say otherwise every listener is on a free port of the loopback address:
//
//	c := StartCabrank(t, "--workers", "2", "--", "ruby", "worker.rb", "{addr}")
//	c := StartCabrank(t, "--upstream", "127.0.0.1:9000", "--probes", "off")
//
// The binary is bin/cabrank, or the one that CABRANK_BIN names: a build with
// the race detector, for instance. The log is JSON at level info.
func StartCabrank(t testing.TB, args ...string) *Cabrank {
	t.Helper()
	return StartCabrankEnv(t, nil, args...)
}

// StartCabrankEnv is StartCabrank with additional "NAME=value" environment.
func StartCabrankEnv(t testing.TB, env []string, args ...string) *Cabrank {
	t.Helper()
	defaults := []string{"run"}
	for _, listener := range []string{"listen", "probes", "metrics"} {
		if _, given := flagValue(args, listener); !given {
			defaults = append(defaults, "--"+listener, "127.0.0.1:0")
		}
	}
	c := &Cabrank{Process: StartProcess(t, env, cabrankBinary(t), append(defaults, args...)...)}
	// Runs before the process's own cleanup: the last one in is the first out.
	t.Cleanup(c.stopAtEnd)

	c.Addr = c.listening("listening")
	if value, _ := flagValue(args, "probes"); value != "off" {
		c.ProbesAddr = c.listening("probes listening")
	}
	if value, _ := flagValue(args, "metrics"); value != "off" {
		c.MetricsAddr = c.listening("metrics listening")
	}
	return c
}

// cabrankBinary returns the path of the binary under test.
func cabrankBinary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("CABRANK_BIN")
	if path == "" {
		path = filepath.Join(root(t), "bin", "cabrank")
	}
	return built(t, path, "make build")
}

// flagValue finds a flag of cabrank's own, that is before "--", as "--name
// value" or "--name=value"; the last one counts.
func flagValue(args []string, name string) (value string, given bool) {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			value, given = v, true
		} else if arg == "--"+name && i+1 < len(args) {
			value, given = args[i+1], true
		}
	}
	return value, given
}

// LogLine is one line of cabrank's JSON log, by key: "msg", "level", "time"
// and the attributes.
type LogLine map[string]any

// Text returns an attribute as text, empty if it is absent.
func (l LogLine) Text(key string) string {
	if value, ok := l[key]; ok {
		return fmt.Sprint(value)
	}
	return ""
}

// LogLines returns the lines of the log that are JSON objects with the given
// message, in order.
func (c *Cabrank) LogLines(msg string) []LogLine {
	var found []LogLine
	for line := range strings.Lines(c.Log()) {
		var parsed LogLine
		if json.Unmarshal([]byte(line), &parsed) == nil && parsed["msg"] == msg {
			found = append(found, parsed)
		}
	}
	return found
}

// listening waits for the first log line with a message and returns its
// address.
func (c *Cabrank) listening(msg string) string {
	c.t.Helper()
	var addr string
	c.wait(patience, fmt.Sprintf("the log line %q of cabrank", msg), func() bool {
		if lines := c.LogLines(msg); len(lines) > 0 {
			addr = lines[0].Text("addr")
		}
		return addr != ""
	})
	return addr
}

// Probe asks a probe ("readiness", "startup", "liveness") and returns the HTTP
// status, 0 if there was no answer.
func (c *Cabrank) Probe(name string) int {
	client := http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + c.ProbesAddr + "/" + name)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// WaitReady waits until the readiness probe says 200. Calls need not wait for
// it: they queue.
func (c *Cabrank) WaitReady(within time.Duration) {
	c.t.Helper()
	if c.ProbesAddr == "" {
		c.t.Fatal("WaitReady needs the probes, which this test switched off")
	}
	c.wait(within, "readiness of cabrank", func() bool { return c.Probe("readiness") == http.StatusOK })
}

// Stop ends cabrank by SIGTERM and holds it to R17: the exit code is 0 within
// the bound, and of its workers, their children and its own helpers nothing is
// left.
func (c *Cabrank) Stop() {
	c.t.Helper()
	c.ended = true
	c.Signal(syscall.SIGTERM)
	if code := c.ExitCode(stopBound); code != 0 {
		c.t.Errorf("cabrank ended with %v after SIGTERM, want exit code 0", c.cmd.ProcessState)
	}
	c.WaitNoneLeft(3 * time.Second)
}

// Kill ends cabrank by SIGKILL. R18 gives its workers 3 s: WaitNoneLeft.
func (c *Cabrank) Kill() {
	c.t.Helper()
	c.ended = true
	c.Process.Kill()
}

// stopAtEnd stops what the test has left running. A test that has failed gets
// no second complaint.
func (c *Cabrank) stopAtEnd() {
	if !c.ended && !c.t.Failed() {
		c.Stop()
	}
}
