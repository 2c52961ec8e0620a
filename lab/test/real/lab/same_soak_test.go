//go:build soak

package lab_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/stats"
	"github.com/cabrank/cabrank/test/real/harness"
)

const same = `
name: same
rounds: 10
data: '{"sleep_ms": {{exponential 5}}}'
arms: [{name: a}, {name: b}]
loads: [{rate: 800, arrivals: poisson, duration: 400ms, warmup: 100ms}]
primary: {figure: p50, load: 800/s, base: a, other: b}
`

// Two arms that are the same, with real processes, are told apart about as often as the
// error that is allowed says: once in twenty trials of ten pairs. Four or more times happens
// by chance once in sixty.
func TestSameArms(t *testing.T) {
	const trials, most = 20, 3
	file := write(t, same)
	wrong := 0
	for i := range trials {
		folder := filepath.Join(t.TempDir(), "out")
		run := startRun(t, file, "--out", folder, "--seed", fmt.Sprint(i+1))
		run.WantExit(3*harness.Patience, 0, "b against a at 800/s")
		r, err := result.Read(folder)
		testkit.Must(t, err)
		// Blocks with marks count here: that others use the machine meets both arms.
		pairs := make([]stats.Pair, r.Rounds)
		for j := range r.Blocks {
			b := &r.Blocks[j]
			if b.Arm == "a" {
				pairs[b.Round-1].Base = b.Figure("p50")
			} else {
				pairs[b.Round-1].Other = b.Figure("p50")
			}
		}
		judged, err := stats.Judge(true, stats.Figure{Name: "p50", Pairs: pairs})
		testkit.Must(t, err)
		t.Logf("trial %d: %s", i+1, judged[0].Words())
		if v := judged[0].Verdict; v == stats.Lower || v == stats.Higher {
			wrong++
		} else if v == stats.TooFewPairs {
			t.Errorf("trial %d: %d of %d pairs are known", i+1, judged[0].Known, len(pairs))
		}
	}
	t.Logf("%d of %d trials tell the same arms apart", wrong, trials)
	testkit.Want(t, wrong <= most, "%d of %d trials tell the same arms apart, at most %d are expected", wrong, trials, most)
}
