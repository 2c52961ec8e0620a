//go:build soak

package attack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	// Calm and flood take turns, so that whatever else the machine does meets both.
	floodTurns = 2
	floodTurn  = 2 * time.Second
	steadyGap  = 5 * time.Millisecond // between two calls of a kind
	// mostFlooded is how much longer the 99th percentile of the steady caller may
	// take than in calm.
	mostFlooded = 5
	floodBound  = 20 * time.Second // for what should take a turn, or end at once
)

// While an attacker sends as much as a core can, the calls of another caller, whom
// cabrank has to itself but for that, take little longer than in calm: cabrank has one
// core and one shard, the attacker, the caller and the worker share another one, on
// which the attacker gets only what the others leave. What is measured is so what the
// flood does to cabrank.
func TestFloods(t *testing.T) { floodsAgainst(t, floods(), startPinned(t, "0"), nil, nil) }

// Over TLS, where bytes do not come by the poller, it is no different.
func TestFloodsOverTLS(t *testing.T) {
	config, cert, _ := harness.WithTLS(t, "")
	floodsAgainst(t, floods(), startPinned(t, "0", "--config", config), []string{"-tls"}, []string{"-ca", cert})
}

// While four sockets send as much as a core can it is no different.
func TestSocketFloods(t *testing.T) {
	floodsAgainst(t, socketFloods(), startPinned(t, "0", "--socket-path", "/ws"), []string{"-conns", "4"}, nil)
}

// floodsAgainst times a caller beside each flood; both have flags of their own.
func floodsAgainst(t *testing.T, floods []flood, c *harness.Cabrank, attacker, caller []string) {
	t.Helper()
	rows, show := floodTable(t)
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			floodBeside{
				c: c, rows: rows, turns: floodTurns, most: mostFlooded,
				calls:  func() steadyTimes { return callSteadily(t, c.Addr, caller...) },
				attack: func() func() string { return flooding(t, c.Addr, f, attacker...) },
			}.run(t, f.name)
		})
	}
	show()
	c.Stop()
}

// floodTable has a row for each flood and who answers beside it.
func floodTable(t *testing.T) (rows *tabwriter.Writer, show func()) {
	t.Helper()
	var table strings.Builder
	rows = tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "flood\tanswered by\tcalm p50\tp50\tcalm p99\tp99\tratio\tsent\t")
	return rows, func() {
		rows.Flush()
		t.Logf("\n%s", table.String())
	}
}

// floodBeside is a flood beside calls.
type floodBeside struct {
	c      *harness.Cabrank
	rows   *tabwriter.Writer
	turns  int
	most   float64 // how much longer than in calm the 99th percentile may take
	calls  func() steadyTimes
	attack func() (end func() (sent string))
}

// run calls in calm and beside the flood in turns. No call fails, and nobody stays.
func (f floodBeside) run(t *testing.T, name string) {
	t.Helper()
	var calm, loud steadyTimes
	var sent string
	for range f.turns {
		calm.add(f.calls())
		end := f.attack()
		loud.add(f.calls())
		sent = end()
		f.c.WaitMetric("cabrank_connections", 0)
	}
	n := calm.Failed + loud.Failed
	testkit.Want(t, n == 0, "%d calls failed, %d of them in calm", n, calm.Failed)
	compareTo(t, f.rows, f.most, name+"\tcabrank", calm.Door, loud.Door, sent)
	compareTo(t, f.rows, f.most, name+"\ta worker", calm.Worker, loud.Worker, sent)
}

// compareTo writes a row and holds its ratio to a bar.
func compareTo(t *testing.T, rows *tabwriter.Writer, most float64, what string, calm, loud []time.Duration, sent string) {
	t.Helper()
	slices.Sort(calm)
	slices.Sort(loud)
	at := func(took []time.Duration, percent int) time.Duration {
		return took[len(took)*percent/100].Round(10 * time.Microsecond)
	}
	ratio := float64(at(loud, 99)) / float64(at(calm, 99))
	fmt.Fprintf(rows, "%s\t%v\t%v\t%v\t%v\t%.1f\t%s\t\n", what, at(calm, 50), at(loud, 50), at(calm, 99), at(loud, 99), ratio, sent)
	testkit.Want(t, ratio <= most, "%s: p99 %v, %v in calm: %.1f times", what, at(loud, 99), at(calm, 99), ratio)
}

// startPinned starts cabrank on some cores and its worker on the second.
func startPinned(t *testing.T, cores string, flags ...string) *harness.Cabrank {
	t.Helper()
	if runtime.NumCPU() < 2 {
		t.Skip("one core: the attacker would take cabrank's")
	}
	for _, tool := range []string{"taskset", "chrt"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	binary := harness.CabrankBinary(t)
	pinned := harness.WriteFile(t, "cabrank", "#!/bin/sh\nexec taskset -c "+cores+" '"+binary+"' \"$@\"\n")
	t.Setenv("CABRANK_BIN", pinned)
	flags = append(flags, "--workers", "1", "--slots", "20", "--transport", "unix",
		"--", "taskset", "-c", "1", binary, "demo", "worker", "--work", "0")
	c := harness.StartCabrank(t, flags...)
	c.WaitReady(floodBound)
	return c
}

// flooding starts the attacker, who gets what others leave of its core, and returns
// when it is at it.
func flooding(t *testing.T, addr string, f flood, flags ...string) (end func() (sent string)) {
	t.Helper()
	p := beside(t, "chrt", append([]string{"--idle", "0", "taskset", "-c", "1", self(t), flooderRole, "-addr", addr, "-flood", f.name}, flags...)...)
	p.WaitLog(floodBound, floodBegun)
	return func() string {
		p.Signal(syscall.SIGTERM)
		p.ExitCode(floodBound)
		return strings.TrimSpace(p.Output())
	}
}

// callSteadily calls for a turn.
func callSteadily(t *testing.T, addr string, flags ...string) (times steadyTimes) {
	t.Helper()
	p := beside(t, "taskset", append([]string{"-c", "1", self(t), steadyRole,
		"-addr", addr, "-for", floodTurn.String(), "-every", steadyGap.String()}, flags...)...)
	p.ExitCode(floodBound)
	testkit.Must(t, json.Unmarshal([]byte(p.Output()), &times))
	return times
}

// beside starts a program of the system.
func beside(t *testing.T, name string, args ...string) *harness.Process {
	t.Helper()
	path, err := exec.LookPath(name)
	testkit.Must(t, err)
	return harness.StartProcess(t, nil, path, args...)
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	return path
}

// Connections over HTTP/1 that are kept, each with requests by the hundred whose answers nobody
// reads: however these are answered, the calls of another caller take at most three times as
// long as in calm at the 99th percentile, none fails, and nothing is left. Who has which core is
// as in TestFloods.
func TestFloodOfCallsOverHTTP1(t *testing.T) {
	rows, show := floodTable(t)
	for _, f := range []struct{ name, flood, limit string }{
		{"health", "health, which cabrank answers", "0"},
		{"a rate limit", "calls of a worker", "500"},
		{"pages from elsewhere", "pages from elsewhere", "0"},
		{"calls of a worker", "calls of a worker", "0"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Setenv("CABRANK_LIMITS_CONNECTIONS", fmt.Sprint(webPlaces))
			t.Setenv("CABRANK_LIMITS_CALLS_PER_SECOND", f.limit)
			c := startPinned(t, "0")
			kib, threads, files := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines"), c.Metric("process_open_fds")
			floodBeside{
				c: c, rows: rows, turns: turns, most: mostSlower,
				calls: func() steadyTimes { return callSteadily(t, c.Addr) },
				attack: func() func() string {
					attack := beside(t, "chrt", "--idle", "0", "taskset", "-c", "1", self(t), webFlooderRole, "-addr", c.Addr, "-flood", f.flood)
					attack.WaitLog(floodBound, floodBegun)
					return func() string {
						sent := fmt.Sprintf("%.0f connections, %d KiB", c.Metric("cabrank_connections"), harness.RSSKiB(t, c.PID)-kib)
						attack.Signal(syscall.SIGTERM)
						attack.ExitCode(floodBound)
						return sent
					}
				},
			}.run(t, f.name)
			testkit.Eventually(t, harness.Patience, "files and goroutines to be those of before", func() bool {
				return c.Metric("cabrank_connections") == 0 && c.Metric("process_open_fds") <= files+5 && c.Metric("go_goroutines") <= threads+5
			})
			c.Stop()
		})
	}
	show()
}
