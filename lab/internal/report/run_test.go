package report

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

// madeUp is a run that nobody measured.
func madeUp(t testing.TB, o made.Options) Run {
	t.Helper()
	dir := t.TempDir()
	r, err := made.Save(dir, o)
	testkit.Must(t, err)
	return Run{Result: r, Record: func(b *result.Block) (*traffic.Record, error) { return result.ReadRecord(dir, b) }}
}

// decided is a run with enough pairs, in which cabrank has half of the latency.
func decided() made.Options {
	return made.Options{Arms: []string{"round-robin", "cabrank"}, Tail: "p90", Rates: []int{70, 80}, Rounds: 12, Seconds: 15, Effect: 0.5, Workers: 3, Seed: 1}
}

func TestRunSummary(t *testing.T) {
	dir := t.TempDir()
	_, err := made.Save(dir, decided())
	testkit.Must(t, err)
	const at, envy = "cabrank against round-robin at 80/s: ", "Not measured: envoy: not installed; install it with scripts/install-deps.sh peers."
	primary := func(r *result.Run) { r.Claims = r.Claims[:1] }
	for _, tc := range []struct {
		name  string
		spoil func(*result.Run)
		want  []string // the first words of the lines
	}{
		{"decided", func(*result.Run) {}, []string{at + "p90 lower by 4", at + "p50 lower by 4", at + "errors higher by ", at + "CPU per call higher by ", envy}},
		{"quick", func(r *result.Run) {
			r.Quick = true
			r.Blocks = slices.DeleteFunc(r.Blocks, func(b result.Block) bool { return b.Round > 2 })
		}, []string{
			at + "p90 46.1 ms and 95.9 ms (medians), with errors of 0.92 % and 0.62 %.", "A quick run gives no verdict: these are figures to look at.",
			at + "p50 21.4 ms and 43.7 ms (medians), with errors of 0.92 % and 0.62 %.", at + "errors 0.92 % and 0.62 % (medians).",
			at + "CPU per call 359 µs and 339 µs (medians), with errors of 0.92 % and 0.62 %.", envy,
		}},
		{"cut short", func(r *result.Run) { primary(r); r.Cut, r.Blocks = true, r.Blocks[:45] },
			[]string{at + "p90 43.6 ms and 86.2 ms (medians), with errors of 0.96 % and 0.49 %; no verdict, the run was cut short.", "Cut short after ", envy}},
		{"marked", func(r *result.Run) {
			primary(r)
			for i := range 12 {
				r.Blocks[i].Marks = []string{"noise"}
			}
		}, []string{
			at + "p90 42.2 ms and 78.6 ms (medians), with errors of 0.96 % and 0.43 %; no verdict, too few pairs (9 of 12 known, needs 10).",
			"Marked and not judged, for reasons that are listed: 12 of 48 blocks.", envy,
		}},
		{"silent", func(r *result.Run) {
			primary(r)
			for i := range r.Blocks {
				if b := &r.Blocks[i]; b.Arm == "cabrank" {
					b.Silent, b.Figures = true, nil
				}
			}
		}, []string{at + "p90 higher without bound, with errors of 100 % and 0.49 % (medians no answer and 82.5 ms); cabrank answered no call in 12 of 12 runs.", envy}},
		{"closed", func(r *result.Run) { r.Loads[0].Open, r.Loads[1].Open, r.Claims = false, false, nil },
			[]string{"The scenario claims nothing: these are figures to look at", "Closed loops (callers wait for answers, so a slow arm is asked less often): 70/s, 80/s.", envy}},
		{"no primary claim, many others", func(r *result.Run) { r.Claims = slices.Repeat(r.Claims[1:3], 4) }, append(slices.Repeat([]string{"cabrank"}, 6),
			"Of 7 other comparisons 7 have a verdict, and 7 show a difference.", "The scenario has no claim that decides", envy)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole := read(t, dir)
			tc.spoil(whole)
			got := sentences(Run{Result: whole}.Document())
			testkit.Want(t, slices.EqualFunc(got, tc.want, strings.HasPrefix),
				"got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		})
	}
}

// An arm that refuses calls is not praised for the time of those that it answers, and what
// it refused stands in the sentence.
func TestRefusalsAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		effect      float64 // latency of cabrank over that of the other
		refuses     string
		share       float64
		first, page string
	}{
		"faster, and refuses": {
			0.5, "cabrank", 0.37,
			"cabrank against round-robin at 80/s: p90 43.1 ms and 82.5 ms (medians), with errors of 37.0 % and 0 %; no verdict, errors differ.",
			"no verdict, errors differ",
		},
		"slower, and refuses": {2, "cabrank", 0.37, "cabrank against round-robin at 80/s: p90 ", " %, with errors of 37.0 % and 0 %"},
		"faster, and the other refuses": {
			0.5, "round-robin", 0.37, "cabrank against round-robin at 80/s: p90 lower by 4", " %, with errors of 0 % and 37.0 %",
		},
		"as fast, and refuses":      {1, "cabrank", 0.37, "cabrank against round-robin at 80/s: p90 ", "no verdict, errors differ"},
		"faster, and refuses a few": {0.5, "cabrank", 0.002, "cabrank against round-robin at 80/s: p90 lower by 4", " %, with errors of 0.20 % and 0 %"},
	} {
		t.Run(name, func(t *testing.T) {
			o := decided()
			o.Effect = tc.effect
			r := madeUp(t, o)
			r.Result.Claims = r.Result.Claims[:1]
			for i := range r.Result.Blocks {
				b := &r.Result.Blocks[i]
				b.Figures["errors"] = 0
				if b.Arm == tc.refuses {
					b.Figures["errors"] = tc.share
				}
			}
			if got := r.Document().Answer[0]; !strings.HasPrefix(got, tc.first) || !strings.Contains(got, tc.page) {
				t.Errorf("got %s\nwant %s ... %s", got, tc.first, tc.page)
			}
			text := string(r.Document().HTML())
			testkit.Says(t, text, tc.page, tc.refuses+", "+percent(tc.share)+" errors")
		})
	}
}

// A verdict is one without the send lag of either side, too.
func TestSendLagInVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		without float64 // share of p90 of round-robin that is no lag
		want    string
	}{
		"a fifth is lag":        {0.8, "cabrank against round-robin at 80/s: p90 lower by 4"},
		"the difference is lag": {0.5, "cabrank against round-robin at 80/s: p90 43.1 ms and 82.5 ms (medians), with errors of 0.99 % and 0.49 %; no verdict, send lag may be the difference."},
		"all of it is lag":      {0, "cabrank against round-robin at 80/s: p90 43.1 ms and 82.5 ms (medians), with errors of 0.99 % and 0.49 %; no verdict, send lag may be the difference."},
	} {
		t.Run(name, func(t *testing.T) {
			r := madeUp(t, decided())
			r.Result.Claims = r.Result.Claims[:1]
			for i := range r.Result.Blocks {
				if b := &r.Result.Blocks[i]; b.Arm == "round-robin" {
					b.Late = map[string]float64{"p90": tc.without * b.Figure("p90")}
				}
			}
			got := r.Document().Answer[0]
			testkit.Want(t, strings.HasPrefix(got, tc.want), "got %s\nwant %s", got, tc.want)
			testkit.Equal(t, cellsOf(r.Result).cell(cellKey{"round-robin", "80/s"}, "p90"), "82.5 ms *", "in tables")
		})
	}
}

// A page has what the issue lists, each in words, too.
func TestRunPage(t *testing.T) {
	o := decided()
	o.Noisy, o.Pause, o.Rounds = 3, true, 3
	r := madeUp(t, o)
	text := string(r.Document().HTML())
	testkit.Says(t, text,
		"made-up: Figures that nobody measured", "Does the page show them?",
		"What was compared", "too few pairs (2 of 3 known, needs 10)",
		"80/s: one call in 10 takes longer than", "p50 at 80/s: ", "p90 at 80/s: ", "errors at 80/s: ",
		"calls failed, in 2 of 15 seconds, the last 2 s after it began",
		"From 7 to 8.5: worker 1 stopped.", "unequal shares (coefficient of variation", "nearly equal shares",
		"80/s: CPU per call ", "connections at 80/s: ", "Calls without an answer in all blocks, by status.",
		"others used 0.50 cores meanwhile",
		"The scenario, to repeat it", "name: made-up",
		"2 cores (Imaginary CPU", "2026-11-23 04:05:06 UTC", "v1.2.3",
	)
	for _, never := range []string{"NaN", "Inf", "<script", "http://", "https://"} {
		testkit.Want(t, !strings.Contains(text, never), "%s is in the page", never)
	}
}

// Where all blocks are marked, the pictures say so; where no call was answered, there is a gap.
func TestChartsOfMarkedBlocks(t *testing.T) {
	o := decided()
	o.Rates, o.Rounds = []int{60, 70, 80}, 2
	r := madeUp(t, o)
	for i := range r.Result.Blocks {
		b := &r.Result.Blocks[i]
		if b.Arm == "cabrank" && b.Load == "80/s" {
			b.Marks = []string{"noise"}
		}
		if b.Arm == "cabrank" && b.Load == "70/s" {
			b.Silent, b.Figures = true, map[string]float64{"errors": 1}
		}
	}
	text := string(r.Document().HTML())
	testkit.Says(t, text, `class="accent hollow"`, `class="accent outline"`, " at 80 (not judged)", "(cabrank *)", "with cabrank *, ")
	p := r.pictures(cellsOf(r.Result), "p50")[0]
	ours := slices.DeleteFunc(p.Rows[0].Marks, func(m Mark) bool { return m.Pen != accent || m.Kind != "line" })
	testkit.Want(t, len(ours) == 1 && strings.Count(ours[0].Path, "M") == 2 && strings.Contains(p.Words, "cabrank: "),
		"cabrank answered nothing at 70/s, and has a line over it: %+v, %s", ours, p.Words)
}

// A record that cannot be read is told, and the rest is shown.
func TestRecordsMissing(t *testing.T) {
	o := decided()
	o.Rounds, o.Seconds = 2, 3
	r := madeUp(t, o)
	whole := r.Record
	r.Record = func(b *result.Block) (*traffic.Record, error) {
		if b.Arm == "cabrank" {
			return nil, errors.New("gone")
		}
		return whole(b)
	}
	text := string(r.Document().HTML())
	testkit.Want(t, strings.Contains(text, "Round 2 of cabrank at 80/s: gone.") && strings.Contains(text, "with round-robin"),
		"what is missing is not told, or what is there is not shown")
	r.Record = nil
	testkit.Want(t, strings.Contains(string(r.Document().HTML()), "The raw records are not there"), "a run without records does not say so")
}

// Runs of nothing, of one block and of loads without a place have a page, too.
func TestSmallRuns(t *testing.T) {
	o := decided()
	o.Rates, o.Rounds, o.Arms, o.NoClaims = []int{50}, 1, []string{"cabrank"}, true
	for name, spoil := range map[string]func(*result.Run){
		"one block":            func(*result.Run) {},
		"a load of no place":   func(r *result.Run) { r.Loads[0].Unit, r.Loads[0].X = "", 0 },
		"a block of no figure": func(r *result.Run) { r.Blocks[0].Figures = nil },
		"no block":             func(r *result.Run) { r.Blocks = nil },
		"nothing":              func(r *result.Run) { r.Blocks, r.Loads, r.Arms = nil, nil, nil },
	} {
		r := madeUp(t, o)
		spoil(r.Result)
		text := string(r.Document().HTML())
		testkit.Want(t, !strings.Contains(text, "NaN") && strings.Contains(text, "claims nothing"), "%s: %s", name, text)
	}
}

// A figure that is above every number in all blocks is told, too.
func TestNever(t *testing.T) {
	o := decided()
	o.Rounds = 1
	r := madeUp(t, o)
	for i := range r.Result.Blocks {
		r.Result.Blocks[i].Beyond = []string{"rebalance"}
	}
	all := cellsOf(r.Result)
	table := figureTables(columns(r.Result.Columns), keysOf(r.Result, all, all), all, all)[1]
	column := slices.IndexFunc(table.Columns, func(c Column) bool { return c.Name == "rebalance" })
	testkit.Want(t, column >= 0 && table.Rows[0][column] == "never", "%+v", table)
}

func TestFigureText(t *testing.T) {
	nan := spreadOf(nil, "p99").middle
	for _, tc := range []struct {
		name string
		v    float64
		want string
	}{
		{"p99", 0.0341, "34.1 ms"}, {"p99", nan, "–"}, {"errors", 0.012, "1.2 %"}, {"rate", 812, "812/s"},
		{"cpu_all", 0.000041, "41 µs"}, {"rss_front", 12_300_000, "12.3 MB"}, {"rss_workers", 2.5e9, "2.50 GB"}, {"rss_front", 900e3, "900 KB"},
		{"connections", 12000, "12,000"}, {"connections", 1.5, "1.50"}, {"spread", 0, "0.00"},
	} {
		testkit.Equal(t, figureText(tc.name, tc.v), tc.want, "%s %v", tc.name, tc.v)
	}
	b := result.Block{Silent: true, Beyond: []string{"recovery"}}
	if a, b := figureText("p99", b.Figure("p99")), figureText("recovery", b.Figure("recovery")); a != "no answer" || b != "never" {
		t.Error(a, b)
	}
}

// Where something was done to the arms, they stand below each other in one picture, which
// says who lost how much.
func TestStrips(t *testing.T) {
	o := decided()
	o.Rounds, o.Pause = 1, true
	d := madeUp(t, o).Document()
	if d.Picture == nil || len(d.Picture.Rows) != 2 || len(d.Picture.Events) != 1 || !strings.HasPrefix(d.Picture.Title, "80/s: ") || !strings.Contains(d.Picture.Title, " failed with ") {
		t.Fatalf("the answer is shown by %+v", d.Picture)
	}
	for _, row := range d.Picture.Rows {
		testkit.Want(t, strings.Contains(row.Label, " failed, in ") || strings.Contains(row.Label, ": every call was answered"),
			"%v", row.Label)
	}
	i := slices.IndexFunc(d.Sections, func(s Section) bool { return s.Heading == "Over time" })
	testkit.Want(t, i >= 0 && len(d.Sections[i].Pictures) == 1 && strings.HasPrefix(d.Sections[i].Pictures[0].Title, "70/s: "),
		"the other load has none, or that of the answer is there twice")
}
