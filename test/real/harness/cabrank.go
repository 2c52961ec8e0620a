// Package harness is what the tests against real programs share: it starts the built
// binary, workers and clients in several languages, and watches and ends them. Run
// the tests by `make test-real`, which builds and installs what they need.
//
// Start with StartCabrank for cabrank itself and StartProcess for any other
// program; both clean up after themselves. What a test waits for is an event
// (WaitLog, WaitReady, testkit.Eventually), never a time. Every package of tests has
// Main as its TestMain: its binary plays some of the workers.
package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// StopBound is how long a stop by SIGTERM may take: drain_timeout and
// stop_timeout at their defaults (20 s, 5 s), and some for a busy machine.
const StopBound = 30 * time.Second

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

	Ended bool // by Stop or Kill: the end of the test has nothing to ask
}

// StartCabrank starts `cabrank run ARGS…` and waits until it listens. Unless
// ARGS say otherwise every listener and worker is on a free port of the loopback
// address:
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
	defaults = append(defaults, ownPorts(t, args)...)
	c := &Cabrank{Process: StartProcess(t, env, CabrankBinary(t), append(defaults, args...)...)}
	// Runs before the process's own cleanup: the last one in is the first out.
	t.Cleanup(c.stopAtEnd)

	c.Addr = c.Listening("listening")
	if value, _ := flagValue(args, "probes"); value != "off" {
		c.ProbesAddr = c.Listening("probes listening")
	}
	if value, _ := flagValue(args, "metrics"); value != "off" {
		c.MetricsAddr = c.Listening("metrics listening")
	}
	return c
}

// ownPorts are flags by which workers on ports have them to themselves: servers on
// gRPC's C core share a port with those of another test that runs meanwhile.
func ownPorts(t testing.TB, args []string) []string {
	t.Helper()
	for _, name := range []string{"start-port", "transport", "config"} {
		if _, given := flagValue(args, name); given {
			return nil
		}
	}
	if !slices.Contains(args, "--") {
		return nil
	}
	return []string{"--start-port", strconv.Itoa(testkit.FreePorts(t, 16))}
}

// CabrankBinary returns the path of the binary under test.
func CabrankBinary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("CABRANK_BIN")
	if path == "" {
		path = filepath.Join(Root(t), "bin", "cabrank")
	}
	return Built(t, path, "make build")
}

// LabBinary returns the path of the lab, which stands beside cabrank.
func LabBinary(t testing.TB) string {
	t.Helper()
	return Built(t, filepath.Join(Root(t), "bin", "cabrank-lab"), "make lab")
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

// Failure returns the first line in which cabrank says why it has ended, empty if
// it has not said that.
func (p *Process) Failure() string {
	for _, line := range (&Cabrank{Process: p}).LogLines("failed") {
		return line.Text("error")
	}
	return ""
}

// Listening waits for the first log line with a message and returns its
// address.
func (c *Cabrank) Listening(msg string) string {
	c.T.Helper()
	var addr string
	c.Wait(Patience, fmt.Sprintf("the log line %q of cabrank", msg), func() bool {
		if lines := c.LogLines(msg); len(lines) > 0 {
			addr = lines[0].Text("addr")
		}
		return addr != ""
	})
	return addr
}

// Probe asks a probe ("readiness", "startup", "liveness") and returns the HTTP
// status, 0 if there was no answer.
func (c *Cabrank) Probe(name string) int { return c.probeWithin(Patience, name) }

func (c *Cabrank) probeWithin(limit time.Duration, name string) int {
	client := http.Client{Timeout: limit}
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
	c.T.Helper()
	testkit.Need(c.T, c.ProbesAddr != "", "WaitReady needs the probes, which this test switched off")
	c.Wait(within, "readiness of cabrank", func() bool { return c.Probe("readiness") == http.StatusOK })
}

// Stop ends cabrank by SIGTERM and holds it to R17: the exit code is 0 within
// the bound, and of its workers, their children and its own helpers nothing is
// left.
func (c *Cabrank) Stop() {
	c.T.Helper()
	c.Ended = true
	c.StopBy(syscall.SIGTERM)
}

// Kill ends cabrank by SIGKILL. R18 gives its workers 3 s: WaitNoneLeft.
func (c *Cabrank) Kill() {
	c.T.Helper()
	c.Ended = true
	c.Process.Kill()
}

// stopAtEnd stops what the test has left running. A test that has failed gets
// no second complaint.
func (c *Cabrank) stopAtEnd() {
	if !c.Ended && !c.T.Failed() {
		c.Stop()
	}
}

// PeakMemory returns the largest resident size that cabrank has had, in bytes.
func (c *Cabrank) PeakMemory() int {
	c.T.Helper()
	return kibibytes(c.T, c.PID, "VmHWM:") << 10
}

// WantProbes compares the status of each probe.
func WantProbes(t testing.TB, c *Cabrank, want map[string]int) {
	t.Helper()
	for name, status := range want {
		testkit.Equal(t, c.Probe(name), status, "/%s answers", name)
	}
}

// FirstAfter is when the log told something first; 0: never.
func (c *Cabrank) FirstAfter(t testing.TB, began time.Time, msg string) time.Duration {
	t.Helper()
	lines := c.LogLines(msg)
	if len(lines) == 0 {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, lines[0].Text("time"))
	testkit.Must(t, err)
	return at.Sub(began)
}

// Probing is what a prober saw of a probe: Kubernetes asks every few seconds,
// this one as often as it can be held to a bound.
type Probing struct {
	Statuses map[int]int
	Took     []time.Duration
}

// TimedProbe asks a probe again and again until ctx ends, each time within a limit.
func (c *Cabrank) TimedProbe(ctx context.Context, every, limit time.Duration, name string) (seen Probing) {
	seen.Statuses = map[int]int{}
	pause := time.NewTicker(every)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-pause.C:
		}
		began := time.Now()
		seen.Statuses[c.probeWithin(limit, name)]++
		seen.Took = append(seen.Took, time.Since(began))
	}
}

// SpreadOf words what sorted times are like.
func SpreadOf(sorted []time.Duration) string {
	at := func(part int) time.Duration { return sorted[(len(sorted)-1)*part/100].Round(100 * time.Microsecond) }
	return fmt.Sprintf("median %v, p99 %v, longest %v (%d)", at(50), at(99), at(100), len(sorted))
}

// Timeouts of the stops below, and what they may take in all.
const (
	StopDrain   = time.Second
	StopWorkers = 500 * time.Millisecond
	StopEnd     = StopDrain + StopWorkers + 20*time.Second
)

// StopWithin is Stop for a cabrank with other timeouts.
func (c *Cabrank) StopWithin(bound time.Duration) {
	c.T.Helper()
	c.Ended = true
	c.Signal(syscall.SIGTERM)
	c.WantExit(bound, 0)
}

// StopSuccessor ends the process that has taken over if the signal came after
// an upgrade, and holds that otherwise nothing is left.
func (c *Cabrank) StopSuccessor() {
	c.T.Helper()
	for _, line := range c.LogLines(HandedOver) {
		if pid, err := strconv.Atoi(line.Text("successor")); err == nil && Alive(pid) {
			c.SignalTo(pid, syscall.SIGTERM)
			testkit.Eventually(c.T, StopEnd, "the end of the successor", func() bool { return !Alive(pid) })
		}
	}
	c.WaitNoneLeft(Patience)
}
