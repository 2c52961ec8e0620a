//go:build real || soak

package lab_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/test/real/harness"
)

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
	if due["cabrank"] < 300 || due["cabrank"] != due["simulated"] {
		t.Errorf("not the same calls: %v", due)
	}
	if ratio := p50["simulated"] / p50["cabrank"]; !(ratio > 1./3 && ratio < 3) {
		t.Errorf("p50: %v", p50)
	}
	if notes := strings.Join(run.Notes, "\n"); !strings.Contains(notes, "Simulated with what one worker takes beside the work of a call, 4 at a time: ") {
		t.Errorf("notes: %s", notes)
	}
}
