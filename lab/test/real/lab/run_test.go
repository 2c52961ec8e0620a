//go:build real || soak

package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

const tiny = `
name: tiny
about: a small one
question: does it run?
data: '{"sleep_ms": {{uniform 1 3}}, "cpu_ms": 0.1}'
rounds: 2
limit: 50%
workers: {slots: 20}
arms:
  - name: single
  - {name: per-call, client: {connections: per-call, processes: 2}}
  - {name: max-age, workers: {max_age: 300ms}, front: {kind: dns, ttl: 1s}, client: {connections: single, dns_interval: 100ms}}
  - {name: not here, optional: true, workers: {command: no-such-program-anywhere}}
every_load: {duration: 1s, warmup: 200ms}
loads:
  - rate: [50, 100]
  - at_once: 20
    every: 250ms
    arms: [single, per-call]
  - name: one more
    rate: 100
    duration: 6s
    rounds: 1
    arms: [max-age]
    events: [{at: 500ms, do: add}, {at: 2s, do: slow, worker: 1, by: 30ms, for: 500ms}]
primary: {figure: p50, load: 100/s, base: single, other: per-call}
`

// A scenario in a file is run from end to end: every arm that is there is measured, with
// what its processes use; what is not there is named.
func TestRun(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	run := startRun(t, write(t, tiny), "--out", folder, "--seed", "5")
	run.WantExit(3*harness.Patience, 0, "Fewer than 50 % errors: single up to 100/s", "report.html")
	r, err := result.Read(folder)
	testkit.Must(t, err)
	if len(r.Blocks) != 17 || r.Cut || r.Seed != 5 || len(r.LeftOut) != 1 || !strings.HasPrefix(r.LeftOut[0], "not here: ") {
		t.Errorf("%d blocks, cut %v, seed %d, left out %q", len(r.Blocks), r.Cut, r.Seed, r.LeftOut)
	}
	for i := range r.Blocks {
		checkBlock(t, folder, &r.Blocks[i])
	}
	page, err := os.ReadFile(filepath.Join(folder, "report.html"))
	if err != nil || len(page) > 1_000_000 || !strings.Contains(string(page), "one more") {
		t.Errorf("a report of %d bytes, %v", len(page), err)
	}
	run.WaitNoneLeft(harness.Patience)
}

// checkBlock holds a block against what was asked for.
func checkBlock(t *testing.T, folder string, b *result.Block) {
	t.Helper()
	record, err := result.ReadRecord(folder, b)
	testkit.Must(t, err)
	if b.Silent || record.Due < 40 || record.Calls.Answered.Count() < record.Due/2 || b.Figures["cpu_all"] <= 0 {
		t.Errorf("%s at %s: %d of %d answered, %v", b.Arm, b.Load, record.Calls.Answered.Count(), record.Due, b.Figures)
	}
	roles := map[string]int64{}
	for _, p := range b.Processes {
		roles[p.Role] = p.PeakRSS
	}
	if roles["worker 1"] == 0 || roles["generator 1"] == 0 || roles["controller"] == 0 || (roles["generator 2"] != 0) != (b.Arm == "per-call") {
		t.Errorf("%s at %s: %v", b.Arm, b.Load, roles)
	}
	// The binary that is tested may be one with the race detector.
	if os.Getenv("CABRANK_BIN") == "" && roles["controller"] > 30_000_000 {
		t.Errorf("the controller held %d bytes", roles["controller"])
	}
	if b.Arm == "per-call" && record.Opened < record.Due {
		t.Errorf("%d connections for %d calls", record.Opened, record.Due)
	}
	if b.Load != "one more" {
		return
	}
	if len(b.Events) != 2 || b.Events[0].Err != "" || b.Events[1].Err != "" || b.Workers["worker-2"] == 0 {
		t.Errorf("events %+v, workers %v", b.Events, b.Workers)
	}
}

// Ctrl-C keeps what was measured, and leaves no process.
func TestRunIsEnded(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	run := startRun(t, write(t, tiny), "--out", folder, "--rounds", "100")
	run.Wait(harness.Patience, "two blocks", func() bool { return strings.Count(run.Log(), "/1100 ") >= 2 })
	run.Signal(syscall.SIGINT)
	run.WantExit(harness.Patience, 0)
	if r, err := result.Read(folder); err != nil || !r.Cut || len(r.Blocks) < 2 {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "report.html")); err != nil {
		t.Error(err)
	}
	run.WaitNoneLeft(harness.Patience)
}

// A controller that is killed leaves nothing that runs.
func TestRunIsKilled(t *testing.T) {
	run := startRun(t, write(t, strings.Replace(tiny, "duration: 1s", "duration: 1h", 1)), "--out", filepath.Join(t.TempDir(), "out"))
	run.Wait(harness.Patience, "a generator and a worker", func() bool { return len(run.Family()) >= 3 })
	run.Kill()
	run.WaitNoneLeft(harness.Patience + 10*time.Second)
}

// What cannot be run is told in a line, with exit status 2, and leaves nothing.
func TestRunRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no name", nil, "which scenario? there are: "},
		{"unknown", []string{"conections"}, "did you mean connections?"},
		{"no file", []string{"none.yml"}, "none.yml"},
		{"key", []string{write(t, strings.Replace(tiny, "limit:", "limmit:", 1))}, "limmit: unknown key; did you mean limit?"},
		{"rounds", []string{"connections", "--rounds", "0"}, "--rounds 0: want 1 to 1000"},
		{"command", []string{write(t, strings.NewReplacer("workers: {slots: 20}", "workers: {command: no-such-program-anywhere}",
			"workers: {max_age: 300ms}, ", "", "{at: 2s, do: slow, worker: 1, by: 30ms, for: 500ms}", "").Replace(tiny))}, "no-such-program-anywhere"},
		{"method", []string{write(t, strings.Replace(tiny, "data:", "method: cabrank.lab.v1.Worker/Play\ndata:", 1))}, "has no method Play"},
		{"policy of an arm that is simulated", []string{write(t, strings.Replace(simulatedBeside, "front: simulated", "front: {kind: simulated, policy: best}", 1))},
			`arm "simulated": front.policy "best": want one of cabrank, least_request, p2c, round_robin, random`},
		{"request", []string{write(t, strings.Replace(tiny, "cpu_ms", "cpu", 1))}, "cpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, nil, c.args, c.want)
		})
	}
}

func TestListAndShow(t *testing.T) {
	harness.StartProcess(t, nil, harness.LabBinary(t), "list").WantExit(harness.Patience, 0, "connections")
	show := harness.StartProcess(t, nil, harness.LabBinary(t), "show", "connections")
	show.WantExit(harness.Patience, 0)
	if _, err := scenario.Parse("connections.yml", []byte(show.Output()), nil); err != nil {
		t.Error(err)
	}
}

// What another run, or another command of the lab, has written is not written over.
func TestRunKeepsOtherResults(t *testing.T) {
	for _, name := range []string{"run.json", "report.html"} {
		folder := t.TempDir()
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte("kept"), 0o600))
		startRun(t, write(t, tiny), "--out", folder).WantExit(harness.Patience, 2, "has the results of another run, "+name)
	}
}
