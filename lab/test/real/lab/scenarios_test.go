//go:build real || soak

package lab_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/test/real/harness"
)

// shortly runs a scenario that comes with the program, once and an eighth as long, with some
// of its arms and loads. A roll gets a quarter of its time: all of it must fit in.
func shortly(t *testing.T, name string, arms, loads []string) (*result.Run, report.Document) {
	t.Helper()
	s, err := scenario.Builtin(name, nil)
	testkit.Must(t, err)
	s.Arms = slices.DeleteFunc(s.Arms, func(a scenario.Arm) bool { return !slices.Contains(arms, a.Name) })
	s.Loads = slices.DeleteFunc(s.Loads, func(l scenario.Load) bool { return !slices.Contains(loads, l.Name) })
	for i := range s.Loads {
		l := &s.Loads[i]
		l.Arms = nil
		l.Options.Warmup, l.Options.Duration = 300*time.Millisecond, 2500*time.Millisecond
		if l.Name == "rolling restart" {
			l.Options.Duration *= 2
		}
		l.Events = slices.Clone(l.Events)
		for j := range l.Events {
			l.Events[j].At, l.Events[j].For = l.Events[j].At/4, l.Events[j].For/4
		}
	}
	done, folder := tryOut(t, s)
	for i := range done.Blocks {
		b := &done.Blocks[i]
		testkit.Want(t, b.Figures["rate"] != 0 && b.Figures["cpu_workers"] != 0, "%s at %s: %v", b.Arm, b.Load, b.Figures)
		for _, e := range b.Events {
			testkit.Want(t, e.Err == "", "%s at %s: %+v", b.Arm, b.Load, e)
		}
	}
	r := report.Run{Result: done, Record: func(b *result.Block) (*traffic.Record, error) { return result.ReadRecord(folder, b) }}
	return done, r.Document()
}

// What a policy costs is told beside a perfect queue, and cabrank replaces its workers
// without a call that fails.
func TestPolicies(t *testing.T) {
	done, _ := shortly(t, "policies", []string{"cabrank", "haproxy"}, []string{"mixed", "overload", "rolling restart", "kill -9"})
	testkit.Want(t, len(done.Blocks)+4*len(done.LeftOut) == 8, "%d blocks, left out: %q", len(done.Blocks), done.LeftOut)
	for i := range done.Blocks {
		b := &done.Blocks[i]
		over, known := b.Figures["over_ideal_mean"]
		if known != (b.Load == "mixed") || known && over < 0.9 {
			t.Errorf("%s at %s: the mean is %v times that of the ideal", b.Arm, b.Load, over)
		}
		if b.Arm == "cabrank" && b.Load == "rolling restart" && b.Figures["errors"] > 0 {
			t.Errorf("a rolling restart: %v, %v", b.Errors, b.Events)
		}
	}
}

// Each disturbance is done to all arms, and the page has them below each other.
func TestDisturbance(t *testing.T) {
	const retry = "slow dependency, 120 callers who retry at once"
	done, page := shortly(t, "disturbance", []string{"round-robin", "cabrank", "cabrank plain"}, []string{"stop", "burst", retry})
	for i := range done.Blocks {
		b := &done.Blocks[i]
		testkit.Want(t, len(b.Events) == 1, "%s at %s: %+v", b.Arm, b.Load, b.Events)
	}
	html := string(page.HTML())
	testkit.Says(t, html, "<strong>stop: ", "<strong>burst: ", "<strong>"+retry+": ", `class="wine area"`, "worker-2 stopped for 375ms")
}

// Workers that sleep, behind Cabrank, and the same calls simulated. Figures are held to 15 %
// by the scenario simulated, which takes a quiet machine; here they are about the same, with
// calls so long and slots so free that a busy one does not matter.
const simulatedBeside = `
name: simulated-in-short
about: workers that sleep, and the same calls simulated
question: does it run?
method: cabrank.lab.v1.Worker/Work
data: '{"sleep_ms": {{exponential 100}}}'
rounds: 1
workers: {program: worker, count: 4, slots: 4, full: refuse}
arms:
  - {name: cabrank, about: real, front: cabrank}
  - {name: simulated, about: in virtual time, front: simulated}
loads:
  - {name: load, rate: 60, arrivals: poisson, warmup: 500ms, duration: 6s}
primary: {figure: p50, load: load, base: cabrank, other: simulated, margin: 15%}
`

func TestSimulatedBesideReal(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	startRun(t, write(t, simulatedBeside), "--out", out).WantExit(harness.Patience, 0)
	run, err := result.Read(result.File(out))
	testkit.Must(t, err)
	p50, due := map[string]float64{}, map[string]int64{}
	for i := range run.Blocks {
		b := &run.Blocks[i]
		p50[b.Arm] = b.Figures["p50"]
		r, err := result.ReadRecord(out, b)
		testkit.Must(t, err)
		due[b.Arm] = r.Due
	}
	testkit.Want(t, due["cabrank"] >= 300 && due["cabrank"] == due["simulated"], "not the same calls: %v", due)
	ratio := p50["simulated"] / p50["cabrank"]
	testkit.Want(t, ratio > 1./3 && ratio < 3, "p50: %v", p50)
	testkit.Says(t, strings.Join(run.Notes, "\n"), "Simulated with what one worker takes beside the work of a call, 4 at a time: ")
}
