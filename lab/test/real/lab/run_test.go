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
	"github.com/cabrank/cabrank/lab/internal/trial"
	"github.com/cabrank/cabrank/lab/internal/work"
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
	testkit.Want(t, len(r.Blocks) == 17 && !r.Cut && r.Seed == 5 && len(r.LeftOut) == 1 && strings.HasPrefix(r.LeftOut[0], "not here: "),
		"%d blocks, cut %v, seed %d, left out %q", len(r.Blocks), r.Cut, r.Seed, r.LeftOut)
	for i := range r.Blocks {
		checkBlock(t, folder, &r.Blocks[i])
	}
	page, err := os.ReadFile(filepath.Join(folder, "report.html"))
	testkit.Want(t, err == nil && len(page) <= 1_000_000 && strings.Contains(string(page), "one more"),
		"a report of %d bytes, %v", len(page), err)
	run.WaitNoneLeft(harness.Patience)
}

// checkBlock holds a block against what was asked for.
func checkBlock(t *testing.T, folder string, b *result.Block) {
	t.Helper()
	record, err := result.ReadRecord(folder, b)
	testkit.Must(t, err)
	testkit.Want(t, !b.Silent && record.Due >= 40 && record.Calls.Answered.Count() >= record.Due/2 && b.Figures["cpu_all"] > 0,
		"%s at %s: %d of %d answered, %v", b.Arm, b.Load, record.Calls.Answered.Count(), record.Due, b.Figures)
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
	testkit.Want(t, b.Arm != "per-call" || record.Opened >= record.Due, "%d connections for %d calls", record.Opened, record.Due)
	if b.Load != "one more" {
		return
	}
	testkit.Want(t, len(b.Events) == 2 && b.Events[0].Err == "" && b.Events[1].Err == "" && b.Workers["worker-2"] != 0,
		"events %+v, workers %v", b.Events, b.Workers)
}

// Ctrl-C keeps what was measured, and leaves no process.
func TestRunIsEnded(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	run := startRun(t, write(t, tiny), "--out", folder, "--rounds", "100")
	run.Wait(harness.Patience, "two blocks", func() bool { return strings.Count(run.Log(), "/1100 ") >= 2 })
	run.Signal(syscall.SIGINT)
	run.WantExit(harness.Patience, 0)
	r, err := result.Read(folder)
	testkit.Want(t, err == nil && r.Cut && len(r.Blocks) >= 2, "%v", err)
	_, err = os.Stat(filepath.Join(folder, "report.html"))
	testkit.Want(t, err == nil, "%v", err)
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
	_, err := scenario.Parse("connections.yml", []byte(show.Output()), nil)
	testkit.Want(t, err == nil, "%v", err)
}

// What another run, or another command of the lab, has written is not written over.
func TestRunKeepsOtherResults(t *testing.T) {
	for _, name := range []string{"run.json", "report.html"} {
		folder := t.TempDir()
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte("kept"), 0o600))
		startRun(t, write(t, tiny), "--out", folder).WantExit(harness.Patience, 2, "has the results of another run, "+name)
	}
}

// The worker of the lab is slow when it is told, whoever has started it.
func TestSlow(t *testing.T) {
	const slower = 300 * time.Millisecond
	for _, starts := range []bool{false, true} {
		spec := greeters(t, 1, scenario.FrontCabrank)
		spec.Front.Starts = starts
		spec.Workers[0].Command = []string{spec.Programs.Lab, "worker", "--listen", "{addr}", "--name", "{worker}", "--slots", "{slots}", "--full", "queue", "--slow-by", slower.String()}
		r := start(t, spec)
		client := work.NewWorkerClient(dial(t, r))
		takes := func() time.Duration {
			began := time.Now()
			_, err := client.Work(t.Context(), &work.WorkRequest{})
			testkit.Must(t, err)
			return time.Since(began)
		}
		takes()
		do(t, r, scenario.Event{Do: scenario.DoSlow})
		testkit.Eventually(t, harness.Patience, "calls are slow", func() bool { return takes() >= slower })
		do(t, r, scenario.Event{Do: scenario.DoSlow, For: slower}) // two signals at once may change places
		testkit.Eventually(t, harness.Patience, "calls are fast again", func() bool { return takes() < slower })
	}
}

// write writes a scenario into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.yml")
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// refused starts a run that says in a last line why it does not begin, and leaves nothing.
func refused(t *testing.T, env, args []string, says ...string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "out")
	p := harness.StartProcess(t, env, harness.LabBinary(t), append(append([]string{"run"}, args...), "--out", folder)...)
	p.WantExit(harness.Patience, 2)
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	for _, text := range says {
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "cabrank-lab: ") || !strings.Contains(last, text) || len(lines) > 2 {
			t.Errorf("%q, want %s", p.Log(), text)
		}
	}
	_, err := os.Stat(folder)
	testkit.Want(t, err != nil, "%s was left", folder)
	p.WaitNoneLeft(harness.Patience)
}

// tryOut runs a scenario once, by the code that the program runs it with.
func tryOut(t *testing.T, s *scenario.Scenario) (done *result.Run, folder string) {
	t.Helper()
	s.Rounds, s.Primary, s.Secondary = 1, nil, nil
	both, folder := programs(t), filepath.Join(t.TempDir(), s.Name)
	done, err := trial.Run(t.Context(), trial.Options{
		Scenario: s, Folder: folder, Version: "test", Agent: []string{both.Lab, "agent"}, Hire: trial.Hire, Start: trial.Rigs(both, s),
	})
	testkit.Must(t, err)
	return done, folder
}

func startRun(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"run"}, args...)...)
}
