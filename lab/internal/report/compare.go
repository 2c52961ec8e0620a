package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/stats"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Two are two runs of one scenario: before and after a change, or of two machines. A is
// what is compared with, B that of which something is said.
type Two struct {
	A, B *result.Run
	// NameA and NameB are the files that they are from.
	NameA, NameB string
}

// Check says in a line why two runs may not be set beside each other, or nil.
func (t Two) Check() error {
	a, b := t.A, t.B
	switch {
	case a.Scenario != b.Scenario:
		return fmt.Errorf("these are runs of two scenarios, %s and %s: compare runs of one", a.Scenario, b.Scenario)
	case a.Quick != b.Quick:
		return errors.New("one is a quick run and the other is not: run both in the same way")
	case a.Text != b.Text:
		line, was, is := firstDifference(a.Text, b.Text)
		return fmt.Errorf("the scenarios differ in line %d, %.60q and %.60q: run both with the same file", line, was, is)
	}
	for _, l := range a.Loads {
		if other, known := b.LoadNamed(l.Name); known && other.Open != l.Open {
			return fmt.Errorf("load %s is a closed loop in one and an open loop in the other: their latencies cannot be ranked", l.Name)
		}
	}
	if len(t.common()) == 0 {
		return errors.New("they have no arm and load in common")
	}
	return nil
}

func firstDifference(a, b string) (line int, was, is string) {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for was == is && line < max(len(left), len(right)) {
		was, is, line = at(left, line), at(right, line), line+1
	}
	return line, strings.TrimSpace(was), strings.TrimSpace(is)
}

func (t Two) common() []cellKey { return keysOf(t.A, cellsOf(t.A), cellsOf(t.B)) }

// paired says why the blocks of the two runs are no pairs, or "".
func (t Two) paired() string {
	a, b := cellsOf(t.A), cellsOf(t.B)
	for _, key := range t.common() {
		for _, block := range a[key] {
			if other := b.round(key.arm, key.load, block.Round); other != nil && other.Seed != block.Seed {
				return fmt.Sprintf("the runs have other seeds (%d and %d), so no block of one had the calls of a block of the other: give both the same --seed", t.A.Seed, t.B.Seed)
			}
		}
	}
	return ""
}

// claims are what is tested: the figures of the scenario's claims, at their loads, for
// the arms that they name. All else is shown and not tested: with every figure of every
// arm in it, the correction for their number would hide what is there.
func (t Two) claims() (claims []result.Claim) {
	common := t.common()
	for _, c := range primaryFirst(t.A.Claims) {
		for _, arm := range []string{c.Other, c.Base} {
			own := result.Claim{Figure: c.Figure, Load: c.Load, Base: arm, Other: arm, Margin: c.Margin, Primary: c.Primary && arm == c.Other}
			known := slices.ContainsFunc(claims, func(old result.Claim) bool {
				return old.Figure == own.Figure && old.Load == own.Load && old.Other == arm
			})
			if !known && slices.Contains(common, cellKey{arm, c.Load}) {
				claims = append(claims, own)
			}
		}
	}
	return claims
}

// verdicts compares B with A, the primary figure first.
func (t Two) verdicts() ([]verdict, error) {
	notPairs := t.paired()
	return judge(t.claims(), cellsOf(t.A), cellsOf(t.B), func(figure string) string {
		return cmp.Or(withheld(t.A, figure), withheld(t.B, figure), notPairs)
	})
}

func bAgainstA(v verdict) (where, base, other string) {
	return fmt.Sprintf("%s at %s, B against A", v.claim.Other, v.claim.Load), "A", "B"
}

// Document returns the comparison.
func (t Two) Document() Document {
	d := Document{Title: "Two runs of " + t.A.Scenario, Lead: "A: " + t.NameA + ". B: " + t.NameB + "."}
	verdicts, err := t.verdicts()
	d.judged(verdicts, err, t.A.Quick, bAgainstA, "The scenario claims nothing of what both have: these are figures to look at, without a verdict.", compareText)
	if len(verdicts) > 0 {
		first := verdicts[0].claim
		if d.Picture = bars(first.Load, first.Figure, nil, t.arms(first.Other)); d.Picture != nil {
			d.Picture.Title = first.Other + " at " + d.Picture.Title
		}
	}
	if t.paired() == "" {
		d.Words = append(d.Words, "The two were measured one behind the other: what else has changed between them is in a difference, too. Have both as arms of one scenario to leave that out.")
	}
	d.Words = append(d.Words, "A is "+whatRan(t.NameA, t.A)+".", "B is "+whatRan(t.NameB, t.B)+".")
	if !slices.Equal(t.A.Machine, t.B.Machine) {
		d.Words = append(d.Words, "The machines differ. A: "+strings.Join(t.A.Machine, " ")+" B: "+strings.Join(t.B.Machine, " "))
	}
	d.add(Section{
		Heading: "Figures", Tables: figureTables(columns(t.A.Columns), t.common(), cellsOf(t.A), cellsOf(t.B)),
		Text: []string{"Medians of the blocks, A → B. They are shown, and not tested. With a star all of the blocks are marked and not judged."},
	})
	d.add(Section{Heading: "By load", Pictures: t.byLoad(), Text: []string{"Each point is the median of the blocks, and the bar beside it goes from the lowest to the highest."}})
	d.add(Section{Heading: "How it was measured", Text: []string{"docs/lab-method.md explains the method, docs/lab-run.md what two runs can tell."}, Files: []File{{"The scenario of both", t.A.Text}}})
	return d
}

const compareText = "Blocks of the same round and seed are pairs: they had the same calls. Tested are the figures of the scenario's claims for the arms that they name; the first line decides, if it is named so, and the others carry a correction for their number (Holm)."

func whatRan(name string, r *result.Run) string {
	text := fmt.Sprintf("%s, cabrank %s, of %s, with %s", name, r.Version, r.Began.UTC().Format("2006-01-02 15:04 UTC"), plural(len(r.Blocks), "block"))
	if r.Cut {
		text += ", cut short"
	}
	return text
}

func (t Two) arms(arm string) []armOf {
	return []armOf{{Key{"B", accent, false}, arm, cellsOf(t.B)}, {Key{"A", gray, false}, arm, cellsOf(t.A)}}
}

// byLoad has A and B of one arm over the loads.
func (t Two) byLoad() (pictures []*Picture) {
	both := Run{Result: t.A}
	series, _ := both.series()
	for _, loads := range series {
		for _, arm := range both.drawOrder() {
			for _, name := range []string{"errors", tailFigure(cellsOf(t.A), "")} {
				p := byLoad(fmt.Sprintf("%s: %s by load", arm, figureName(name)), loads, name, t.arms(arm))
				if p != nil && len(pictures) < mostShares {
					pictures = append(pictures, p)
				}
			}
		}
	}
	return pictures
}

// Findings are what a comparison came to, for JSON.
type Findings struct {
	A string `json:"a"` // the file
	B string `json:"b"`
	// Words are the sentences of the report.
	Words []string `json:"words"`
	// Tested are the comparisons, that of the primary figure first.
	Tested []Tested `json:"tested,omitempty"`
	// Figures are all medians, or those of two loads.
	Figures []Medians `json:"figures"`
}

// Tested is one comparison of B with A.
type Tested struct {
	Arm     string `json:"arm"`
	Load    string `json:"load"`
	Primary bool   `json:"primary,omitempty"`
	// Withheld says why there is no verdict whatever the pairs say.
	Withheld string `json:"withheld,omitempty"`
	stats.Comparison
}

// Medians is a figure of an arm at a load in A and in B; null is not known, or above
// every number.
type Medians struct {
	Arm    string   `json:"arm,omitempty"`
	Load   string   `json:"load,omitempty"`
	Figure string   `json:"figure"`
	A      *float64 `json:"a"`
	B      *float64 `json:"b"`
}

// findings are the sentences and figures of a comparison.
func findings(nameA, nameB string, d Document, keys []cellKey, of func(key cellKey, figure string) (a, b float64)) Findings {
	f := Findings{A: nameA, B: nameB, Words: slices.Concat(d.Answer, d.Words), Figures: []Medians{}}
	number := func(v float64) *float64 {
		if !finite(v) {
			return nil // JSON cannot say it
		}
		return &v
	}
	for _, key := range keys {
		for _, figure := range slices.Concat(columns(nil)...) {
			a, b := of(key, figure)
			if finite(a) || finite(b) {
				f.Figures = append(f.Figures, Medians{key.arm, key.load, figure, number(a), number(b)})
			}
		}
	}
	return f
}

// Findings are those of two runs.
func (t Two) Findings() Findings {
	a, b := cellsOf(t.A), cellsOf(t.B)
	f := findings(t.NameA, t.NameB, t.Document(), t.common(), func(key cellKey, figure string) (float64, float64) {
		return a.spread(key.arm, key.load, figure).middle, b.spread(key.arm, key.load, figure).middle
	})
	verdicts, _ := t.verdicts() // the words have the error
	for _, v := range verdicts {
		tested := Tested{Arm: v.claim.Other, Load: v.claim.Load, Primary: v.claim.Primary, Withheld: v.withheld, Comparison: v.comparison}
		if v.withheld != "" { // what the pairs would have said is not for anybody's use
			tested.Comparison = stats.Comparison{
				Figure: v.comparison.Figure, Verdict: "withheld", Ratio: stats.Interval{High: math.Inf(1)},
				P: 1, PEqual: 1, Margin: v.comparison.Margin, Pairs: v.comparison.Pairs,
			}
		}
		f.Tested = append(f.Tested, tested)
	}
	return f
}

// TwoLoads are two loads of `cabrank lab load`. Each is one block, so that there are
// figures and no verdict.
type TwoLoads struct {
	A, B Load
	// NameA and NameB are the files that they are from.
	NameA, NameB string
}

// Check says in a line why two loads may not be set beside each other, or nil.
func (t TwoLoads) Check() error { return traffic.Rankable(t.A.Record, t.B.Record) }

// Document returns the comparison.
func (t TwoLoads) Document() Document {
	a, b := blockOf(t.A), blockOf(t.B)
	name := "p99"
	for _, lower := range []string{"p95", "p90", "p50"} {
		if math.IsNaN(a.Figure(name)) || math.IsNaN(b.Figure(name)) {
			name = lower
		}
	}
	d := Document{
		Title: "Two loads", Lead: "A: " + t.NameA + ". B: " + t.NameB + ".", Words: t.differences(),
		Answer: []string{
			fmt.Sprintf("%s is %s in A and %s in B, with errors of %s and %s.", name,
				figureText(name, a.Figure(name)), figureText(name, b.Figure(name)), percent(a.Figure("errors")), percent(b.Figure("errors"))),
			"No verdict: each is one block, and what differs between two blocks may be chance. A scenario has pairs (cabrank lab list).",
		},
	}
	read := func(name string, l Load) armRead {
		return armRead{arm: name, all: l.Record.Latency(), errors: l.Record.FailedShare()}
	}
	d.Picture = tailPicture("One call", "both", []armRead{read("B", t.B), read("A", t.A)}, func(name string) (Pen, bool) {
		return map[string]Pen{"A": gray, "B": accent}[name], false
	})
	d.add(Section{Heading: "Figures", Tables: []Table{figuresBeside(a, b), errorsBeside(a.Errors, b.Errors)}})
	d.add(Section{Heading: "How it was measured", Tables: []Table{t.sides()}})
	return d
}

// differences are sentences on what else is not the same, and what the two are.
func (t TwoLoads) differences() (lines []string) {
	for _, of := range [][3]string{{"methods", t.A.Method, t.B.Method}, {"plans", t.A.Record.Plan, t.B.Record.Plan}} {
		if of[1] != of[2] {
			lines = append(lines, fmt.Sprintf("The %s differ. A: %s. B: %s.", of[0], of[1], of[2]))
		}
	}
	var what []string
	for i, l := range []Load{t.A, t.B} {
		name, file := []string{"A", "B"}[i], []string{t.NameA, t.NameB}[i]
		if l.Limited != "" {
			lines = append(lines, fmt.Sprintf("In %s the generator may be what was measured: %s.", name, l.Limited))
		}
		if l.Record.Cut {
			lines = append(lines, fmt.Sprintf("%s was cut short after %s.", name, span(l.Record.Counted)))
		}
		what = append(what, fmt.Sprintf("%s is %s, %s at %s of %s, %s.", name, file, l.Method, l.Address, l.Began.UTC().Format("2006-01-02 15:04 UTC"), calls(l.Record.Due)))
	}
	return append(lines, what...)
}

// blockOf is a load as a block of a run.
func blockOf(l Load) *result.Block {
	var b result.Block
	b.Measure(l.Record, 0)
	return &b
}

func figuresBeside(a, b *result.Block) Table {
	t := Table{Columns: columnsOf("figure", "#A", "#B", "#B / A")}
	for _, f := range result.All() {
		left, right := a.Figure(f.Name), b.Figure(f.Name)
		if math.IsNaN(left) && math.IsNaN(right) {
			continue
		}
		ratio := ""
		if finite(left) && finite(right) && left > 0 {
			ratio = strconv.FormatFloat(right/left, 'f', 2, 64)
		}
		t.Add(figureName(f.Name), figureText(f.Name, left), figureText(f.Name, right), ratio)
	}
	return t
}

// errorsBeside is the calls without an answer, by status.
func errorsBeside(a, b map[string]int64) Table {
	t := Table{Columns: columnsOf("without an answer", "#A", "#B")}
	kinds := map[string]int64{}
	maps.Copy(kinds, a)
	maps.Copy(kinds, b)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Add(kind, count(a[kind]), count(b[kind]))
	}
	return t
}

func (t TwoLoads) sides() Table {
	table := Table{Columns: columnsOf("", "A", "B"), PageOnly: true, Rows: [][]string{
		{"method", t.A.Method, t.B.Method}, {"address", t.A.Address, t.B.Address}, {"plan", t.A.Record.Plan, t.B.Record.Plan},
	}}
	for _, of := range [][2][]string{{t.A.Client, t.B.Client}, {t.A.Machine, t.B.Machine}} {
		for i := range max(len(of[0]), len(of[1])) {
			table.Add("", at(of[0], i), at(of[1], i))
		}
	}
	return table
}

func at(list []string, i int) string {
	if i >= len(list) {
		return ""
	}
	return list[i]
}

// Findings are those of two loads.
func (t TwoLoads) Findings() Findings {
	a, b := blockOf(t.A), blockOf(t.B)
	return findings(t.NameA, t.NameB, t.Document(), []cellKey{{}}, func(_ cellKey, figure string) (float64, float64) {
		return a.Figure(figure), b.Figure(figure)
	})
}
