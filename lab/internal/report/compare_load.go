package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cabrank/cabrank/lab/internal/plot"
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

// Summary says in words what came out.
func (t TwoLoads) Summary() []string {
	a, b := blockOf(t.A), blockOf(t.B)
	name := "p99"
	for _, lower := range []string{"p95", "p90", "p50"} {
		if math.IsNaN(a.Figure(name)) || math.IsNaN(b.Figure(name)) {
			name = lower
		}
	}
	lines := []string{
		fmt.Sprintf("%s is %s in A and %s in B, with errors of %s and %s.", name,
			figureText(name, a.Figure(name)), figureText(name, b.Figure(name)), percent(a.Figure("errors")), percent(b.Figure("errors"))),
		"No verdict: each is one block, and what differs between two blocks may be chance. A scenario has pairs (cabrank lab list).",
	}
	for _, of := range []struct{ what, a, b string }{
		{"methods", t.A.Method, t.B.Method}, {"plans", t.A.Record.Plan, t.B.Record.Plan},
	} {
		if of.a != of.b {
			lines = append(lines, fmt.Sprintf("The %s differ. A: %s. B: %s.", of.what, of.a, of.b))
		}
	}
	for _, l := range []struct {
		name string
		load Load
	}{{"A", t.A}, {"B", t.B}} {
		if l.load.Limited != "" {
			lines = append(lines, fmt.Sprintf("In %s the generator may be what was measured: %s.", l.name, l.load.Limited))
		}
		if l.load.Record.Cut {
			lines = append(lines, fmt.Sprintf("%s was cut short after %s.", l.name, span(l.load.Record.Counted)))
		}
	}
	return append(lines, "A is "+t.NameA+", "+whatCalled(t.A)+".", "B is "+t.NameB+", "+whatCalled(t.B)+".")
}

func whatCalled(l Load) string {
	return fmt.Sprintf("%s at %s of %s, %s", l.Method, l.Address, l.Began.UTC().Format("2006-01-02 15:04 UTC"), calls(l.Record.Due))
}

// blockOf is a load as a block of a run.
func blockOf(l Load) *result.Block {
	var b result.Block
	b.Measure(l.Record, 0)
	return &b
}

// Figures is the table of what both came to.
func (t TwoLoads) Figures() Table {
	table := Table{Columns: []Column{{Name: "figure"}, {Name: "A", Number: true}, {Name: "B", Number: true}, {Name: "B / A", Number: true}}}
	a, b := blockOf(t.A), blockOf(t.B)
	for _, f := range result.All() {
		left, right := a.Figure(f.Name), b.Figure(f.Name)
		if math.IsNaN(left) && math.IsNaN(right) {
			continue
		}
		ratio := ""
		if finite(left) && finite(right) && left > 0 {
			ratio = strconv.FormatFloat(right/left, 'f', 2, 64)
		}
		table.Add(figureName(f.Name), figureText(f.Name, left), figureText(f.Name, right), ratio)
	}
	return table
}

// Errors is the table of calls without an answer, by status.
func (t TwoLoads) Errors() Table {
	table := Table{Columns: []Column{{Name: "without an answer"}, {Name: "A", Number: true}, {Name: "B", Number: true}}}
	a, b := blockOf(t.A).Errors, blockOf(t.B).Errors
	both := maps.Clone(a)
	if both == nil {
		both = map[string]int64{}
	}
	maps.Copy(both, b)
	for _, kind := range slices.Sorted(maps.Keys(both)) {
		table.Add(kind, count(a[kind]), count(b[kind]))
	}
	return table
}

// Print writes the comparison for a terminal.
func (t TwoLoads) Print(w io.Writer) error { return printed(w, t.Summary(), t.Figures(), t.Errors()) }

// Page returns the comparison.
func (t TwoLoads) Page() Page {
	p := Page{Title: "Two loads", Lead: "A: " + t.NameA + ". B: " + t.NameB + ".", Summary: t.Summary()}
	pen := func(name string) (plot.Pen, bool) {
		if name == "B" {
			return plot.Accent, false
		}
		return plot.Gray, false
	}
	tail := tailChart("Of all calls,", "both", []armRead{t.read("B", t.B), t.read("A", t.A)}, pen)
	p.add(Part{Heading: "Figures", Charts: tail, Tables: tables(t.Figures(), t.Errors())})
	p.add(Part{Heading: "How it was measured", Tables: []Table{t.sides()}})
	return p
}

func (TwoLoads) read(name string, l Load) armRead {
	return armRead{arm: name, all: l.Record.Latency(), errors: l.Record.FailedShare()}
}

// sides tells where and how each was measured.
func (t TwoLoads) sides() Table {
	table := Table{Columns: []Column{{Name: ""}, {Name: "A"}, {Name: "B"}}}
	table.Add("method", t.A.Method, t.B.Method)
	table.Add("address", t.A.Address, t.B.Address)
	table.Add("plan", t.A.Record.Plan, t.B.Record.Plan)
	lines := func(of func(Load) []string) {
		for i := range max(len(of(t.A)), len(of(t.B))) {
			table.Add("", at(of(t.A), i), at(of(t.B), i))
		}
	}
	lines(func(l Load) []string { return l.Client })
	lines(func(l Load) []string { return l.Machine })
	return table
}

func at(list []string, i int) string {
	if i >= len(list) {
		return ""
	}
	return list[i]
}
