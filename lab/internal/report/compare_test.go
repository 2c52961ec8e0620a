package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/test/made"
)

// TestTwo holds what is said of a run before and one after cabrank became slower.
func TestTwo(t *testing.T) {
	o := made.Options{Arms: []string{"round-robin", "cabrank"}, Tail: "p90", Rates: []int{20, 80}, Rounds: 10, Seconds: 15, Effect: 0.5, Workers: 2, Seed: 7}
	before, after := t.TempDir(), t.TempDir()
	_, errA := made.Save(before, o)
	o.Effect, o.Machine = 0.8, 1
	_, errB := made.Save(after, o)
	testkit.Need(t, errA == nil && errB == nil, "%v %v", errA, errB)
	for name, test := range map[string]func(*testing.T, Two){
		"verdict": twoRuns, "no verdict": twoRunsWithoutVerdict, "findings": foundInTwo,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, Two{A: read(t, before), B: read(t, after), NameA: "before/run.json", NameB: "after/run.json"})
		})
	}
}

func read(t *testing.T, dir string) *result.Run {
	t.Helper()
	r, err := result.Read(dir)
	testkit.Must(t, err)
	return r
}

func twoRuns(t *testing.T, pair Two) {
	t.Helper()
	testkit.Must(t, pair.Check())
	lines := sentences(pair.Document())
	for i, want := range []string{
		"cabrank at 80/s, B against A: p90 higher by ", "cabrank at 80/s, B against A: p50 higher by ",
		"Of 7 other comparisons 7 have a verdict, and 1 show a difference.",
		"The two were measured one behind the other:", "A is before/run.json, cabrank v1.2.3, of 2026-11-23 04:05 UTC, with 40 blocks.", "B is after/run.json,",
	} {
		testkit.Need(t, i < len(lines) && strings.HasPrefix(lines[i], want),
			"got\n%s\nwant as line %d %s", strings.Join(lines, "\n"), i+1, want)
	}
	var terminal bytes.Buffer
	testkit.Must(t, pair.Document().Print(&terminal))
	page := string(pair.Document().HTML())
	wants := []string{"decides", "no difference shown", "B against A", "80/s", " ms → "}
	testkit.Says(t, terminal.String(), wants...)
	testkit.Says(t, page, wants...)
	// What did not change is not said to have: the other arm had the same calls.
	for _, v := range must(pair.verdicts()) {
		if v.claim.Other == "round-robin" && v.shown() {
			t.Errorf("%s of round-robin is the same in both: %s", v.claim.Figure, v.said())
		}
	}
}

func must(v []verdict, err error) []verdict {
	if err != nil {
		panic(err)
	}
	return v
}

// Runs with other seeds are no pairs, and what is cut short has no verdict either.
func twoRunsWithoutVerdict(t *testing.T, pair Two) {
	t.Helper()
	seeds := pair
	other := *pair.B
	other.Seed, other.Blocks = 8, slices.Clone(other.Blocks)
	for i := range other.Blocks {
		other.Blocks[i].Seed++
	}
	seeds.B = &other
	testkit.Must(t, seeds.Check())
	lines := strings.Join(sentences(seeds.Document()), "\n")
	testkit.Says(t, lines, "cabrank at 80/s, B against A: p90 ", " (medians), with errors of 1.0 % and 1.0 %.\nNo verdict: the runs have other seeds (7 and 8)")
	testkit.Want(t, !strings.Contains(lines, " lower") && !strings.Contains(lines, " higher"), "a verdict in\n%s", lines)
	marked := pair
	noisy := *pair.B
	noisy.Blocks = slices.Clone(noisy.Blocks)
	for i := range noisy.Blocks {
		noisy.Blocks[i].Marks = []string{"noise"}
	}
	marked.B = &noisy
	testkit.Want(t, strings.Contains(string(marked.Document().HTML()), "10 → 10 *"), "medians of marked blocks without a star")
	cut := pair
	cut.B.Cut, cut.B.Machine = true, []string{"another one."}
	lines = strings.Join(sentences(cut.Document()), "\n")
	testkit.Want(t, strings.Contains(lines, "No verdict: the run was cut short.") && strings.Contains(lines, "The machines differ."),
		"%s", lines)
	for _, f := range cut.Findings().Tested {
		testkit.Want(t, f.Verdict == "withheld" && f.P == 1 && f.Withheld != "", "%+v", f)
	}
}

func TestTwoRunsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := made.Save(dir, made.Options{Arms: []string{"a"}, Rates: []int{10}, Rounds: 1, Seconds: 1, Workers: 1})
	testkit.Must(t, err)
	for want, spoil := range map[string]func(*result.Run){
		"these are runs of two scenarios, made-up and other: compare runs of one":                                              func(r *result.Run) { r.Scenario = "other" },
		"one is a quick run and the other is not: run both in the same way":                                                    func(r *result.Run) { r.Quick = true },
		`the scenarios differ in line 2, "about: figures that nobody measured" and "about: more": run both with the same file`: func(r *result.Run) { r.Text = "name: made-up\nabout: more\n" },
		"load 10/s is a closed loop in one and an open loop in the other: their latencies cannot be ranked":                    func(r *result.Run) { r.Loads[0].Open = false },
		"they have no arm and load in common":                                                                                  func(r *result.Run) { r.Blocks = nil },
	} {
		a, b := read(t, dir), read(t, dir)
		spoil(b)
		testkit.RefusedBy(t, (Two{A: a, B: b}).Check(), want)
	}
}

// What was found can be read by others, without figures that JSON does not have.
func foundInTwo(t *testing.T, pair Two) {
	t.Helper()
	text, err := json.Marshal(pair.Findings())
	testkit.Must(t, err)
	testkit.Says(t, string(text), `"arm":"cabrank"`, `"primary":true`, `"figure":"p90"`, `"verdict":"higher"`)
}
