package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/stats"
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

// firstDifference finds the first line that is not the same.
func firstDifference(a, b string) (line int, was, is string) {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(left), len(right)) {
		was, is = "", ""
		if i < len(left) {
			was = left[i]
		}
		if i < len(right) {
			is = right[i]
		}
		if was != is {
			return i + 1, strings.TrimSpace(was), strings.TrimSpace(is)
		}
	}
	return 0, "", ""
}

// common are the cells that both have, in the order of A.
func (t Two) common() (keys []cellKey) {
	a, b := cellsOf(t.A), cellsOf(t.B)
	for _, l := range t.A.Loads {
		for _, arm := range t.A.Arms {
			key := cellKey{arm.Name, l.Name}
			if len(a[key]) > 0 && len(b[key]) > 0 {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

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
	a, b := cellsOf(t.A), cellsOf(t.B)
	judged, err := judge(t.claims(), max(a.rounds(), b.rounds()), func(c result.Claim, round int) stats.Pair {
		return stats.Pair{
			Base:  judgedFigure(a.round(c.Base, c.Load, round), c.Figure),
			Other: judgedFigure(b.round(c.Other, c.Load, round), c.Figure),
		}
	})
	if err != nil {
		return nil, err
	}
	notPairs := t.paired()
	for i := range judged {
		v := &judged[i]
		if v.withheld = withheld(t.A, v.claim.Figure); v.withheld == "" {
			v.withheld = withheld(t.B, v.claim.Figure)
		}
		if v.withheld == "" && notPairs != "" {
			v.withheld = "not pairs"
		}
		v.look(a, b)
	}
	return judged, nil
}

// Summary says in words what came out.
func (t Two) Summary() []string {
	var lines []string
	verdicts, err := t.verdicts()
	switch {
	case err != nil:
		lines = append(lines, "Not judged: "+err.Error()+".")
	case len(verdicts) == 0:
		lines = append(lines, "The scenario claims nothing of what both have: these are figures to look at, without a verdict.")
	}
	for i, v := range verdicts {
		if i == 0 || v.shown() && len(lines) <= mostSentences {
			lines = append(lines, t.sentence(v))
		}
	}
	if why := t.paired(); why != "" {
		lines = append(lines, "No verdict: "+why+".")
	} else {
		lines = append(lines, "The two were measured one behind the other: what else has changed between them is in a difference, too. Have both as arms of one scenario to leave that out.")
	}
	lines = append(lines, "A is "+whatRan(t.NameA, t.A)+".", "B is "+whatRan(t.NameB, t.B)+".")
	if !slices.Equal(t.A.Machine, t.B.Machine) {
		lines = append(lines, "The machines differ. A: "+strings.Join(t.A.Machine, " ")+" B: "+strings.Join(t.B.Machine, " "))
	}
	return lines
}

func whatRan(name string, r *result.Run) string {
	text := fmt.Sprintf("%s, cabrank %s, of %s, with %s", name, r.Version, r.Began.UTC().Format("2006-01-02 15:04 UTC"), plural(len(r.Blocks), "block"))
	if r.Cut {
		text += ", cut short"
	}
	return text
}

// sentence says a verdict on one arm.
func (t Two) sentence(v verdict) string {
	return v.told(fmt.Sprintf("%s at %s, B against A: ", v.claim.Other, v.claim.Load), "A", "B")
}

// Verdicts is the table of what was tested.
func (t Two) Verdicts() Table {
	table := Table{Columns: []Column{
		{Name: "figure"}, {Name: "load"}, {Name: "arm"}, {Name: "A", Number: true}, {Name: "B", Number: true},
		{Name: "B against A"}, {Name: "pairs", Number: true}, {Name: "p", Number: true}, {Name: ""},
	}}
	verdicts, err := t.verdicts()
	if err != nil {
		return table // the summary says why
	}
	for _, v := range verdicts {
		said, pairs, p, decides := v.cells()
		table.Add(v.comparison.Figure, v.claim.Load, v.claim.Other, figureText(v.claim.Figure, v.base.middle),
			figureText(v.claim.Figure, v.other.middle), said, pairs, p, decides)
	}
	return table
}

// Figures is the table of the medians of both, "A → B".
func (t Two) Figures() Table {
	table := Table{Columns: []Column{{Name: "load"}, {Name: "arm"}, {Name: "blocks", Number: true}}}
	a, b := cellsOf(t.A), cellsOf(t.B)
	var shown []string
	for _, name := range columns() {
		if anyKnown(a, name) || anyKnown(b, name) {
			shown = append(shown, name)
			table.Columns = append(table.Columns, Column{Name: figureName(name), Number: true})
		}
	}
	for _, key := range t.common() {
		left, markedA := a.of(key.arm, key.load)
		right, markedB := b.of(key.arm, key.load)
		row := []string{key.load, key.arm, fromTo(starred(strconv.Itoa(len(left)), markedA), starred(strconv.Itoa(len(right)), markedB))}
		for _, name := range shown {
			row = append(row, fromTo(figureText(name, spreadOf(left, name).middle), figureText(name, spreadOf(right, name).middle)))
		}
		table.Add(row...)
	}
	return table
}

// fromTo is a cell of two texts, or of one where they are the same.
func fromTo(a, b string) string {
	if a == b {
		return a
	}
	return a + " → " + b
}

// Print writes the comparison for a terminal.
func (t Two) Print(w io.Writer) error { return printed(w, t.Summary(), t.Verdicts(), t.Figures()) }

// Page returns the comparison.
func (t Two) Page() Page {
	p := Page{Title: "Two runs of " + t.A.Scenario, Lead: "A: " + t.NameA + ". B: " + t.NameB + ".", Summary: t.Summary()}
	p.add(Part{Heading: "What was compared", Text: []string{compareText}, Tables: tables(t.Verdicts())})
	p.add(Part{Heading: "Figures", Text: []string{"Medians of the blocks, A → B. They are shown, and not tested. With a star all of the blocks are marked and not judged."}, Tables: tables(t.Figures())})
	p.add(Part{Heading: "By load", Text: []string{"Each point is the median of the blocks, and the bar beside it goes from the lowest to the highest."}, Charts: t.charts()})
	method := Part{Heading: "How it was measured", Text: []string{"docs/lab-method.md explains the method, docs/lab-results.md what two runs can tell."}}
	if t.A.Text != "" {
		method.Files = []File{{Name: "The scenario of both", Text: t.A.Text}}
	}
	p.Parts = append(p.Parts, method)
	return p
}

const compareText = "Blocks of the same round and seed are pairs: they had the same calls. Tested are the figures of the scenario's claims for the arms that they name; the first line decides, if it is named so, and the others carry a correction for their number (Holm)."

// charts have A and B of one arm over the loads.
func (t Two) charts() (charts []plot.Chart) {
	a, b := cellsOf(t.A), cellsOf(t.B)
	both := Run{Result: t.A}
	for _, loads := range both.series() {
		for _, arm := range both.drawOrder() {
			for _, name := range []string{tailFigure(a, namesOf(loads)...), "errors"} {
				lines := []lineOf{{label: "A", pen: plot.Gray, cells: a, arm: arm}, {label: "B", pen: plot.Accent, cells: b, arm: arm}}
				c, ok := byLoad(loads, name, lines)
				if !ok || name == "errors" && !someAbove(c.Lines) || len(charts) >= mostCourses {
					continue
				}
				c.Title = fmt.Sprintf("%s: %s by load", arm, figureName(name))
				charts = append(charts, c)
			}
		}
	}
	return charts
}
