package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

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
