package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// Two are two runs of one scenario: before and after a change, or of two machines. A is
// what is compared with, B that of which something is said.
type Two struct {
	A, B         *result.Run
	NameA, NameB string // the files that they are from
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
	for was == is && a != b {
		was, a, _ = strings.Cut(a, "\n")
		is, b, _ = strings.Cut(b, "\n")
		line++
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
		d.Picture = t.picture(verdicts[0].claim)
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

// picture is the figure of a claim in both, or the first of others that is known.
func (t Two) picture(of result.Claim) *Picture {
	for _, name := range []string{of.Figure, "p50", "errors", "rate"} {
		if p := bars(of.Load, name, nil, t.arms(of.Other)); p != nil {
			p.Title = of.Other + " at " + p.Title
			return p
		}
	}
	return nil
}

func (t Two) arms(arm string) []armOf {
	return []armOf{{Key{"B", accent, false}, arm, cellsOf(t.B)}, {Key{"A", gray, false}, arm, cellsOf(t.A)}}
}

// Findings are what a comparison came to, for JSON.
type Findings struct {
	A      string   `json:"a"` // the file
	B      string   `json:"b"`
	Words  []string `json:"words"`            // the sentences of the report
	Tested []Tested `json:"tested,omitempty"` // the comparisons, that of the primary figure first
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

// Findings are the sentences and comparisons.
func (t Two) Findings() Findings {
	d := t.Document()
	f := Findings{A: t.NameA, B: t.NameB, Words: slices.Concat(d.Answer, d.Words)}
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
