package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// columns are the figures that a scenario asks for, or those that people look at first, in
// this order, in two tables.
func columns(asked []string) [][]string {
	if len(asked) > 0 {
		return [][]string{asked}
	}
	return [][]string{
		{"p50", "p95", "p99", "p99.9", "first_p50", "first_p99", "total", "errors"},
		{"rate", "cpu_all", "connections", "spread", "over_ideal", "over_ideal_mean", "recovery", "rebalance"},
	}
}

// keysOf are the cells that two runs have in common, in the order of one.
func keysOf(r *result.Run, a, b cells) (keys []cellKey) {
	for _, l := range r.Loads {
		for _, arm := range r.Arms {
			if key := (cellKey{arm.Name, l.Name}); len(a[key]) > 0 && len(b[key]) > 0 {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// figureTables have all medians that are known, "never" and "no answer" among them: "A → B"
// where they are others in b.
func figureTables(columns [][]string, keys []cellKey, a, b cells) (all []Table) {
	fromTo := func(a, b string) string {
		if a == b {
			return a
		}
		return a + " → " + b
	}
	known := func(of cells, name string) bool {
		return slices.ContainsFunc(keys, func(k cellKey) bool { return !math.IsNaN(of.spread(k.arm, k.load, name).middle) })
	}
	for _, group := range columns {
		t := Table{Columns: columnsOf("load", "arm", "#blocks")}
		shown := slices.DeleteFunc(slices.Clone(group), func(name string) bool { return !known(a, name) && !known(b, name) })
		if len(shown) == 0 {
			continue
		}
		for _, name := range shown {
			t.Columns = append(t.Columns, Column{Name: figureName(name), Number: true})
		}
		for _, k := range keys {
			left, markedA := a.of(k.arm, k.load)
			right, markedB := b.of(k.arm, k.load)
			row := []string{k.load, k.arm, fromTo(starred(strconv.Itoa(len(left)), markedA), starred(strconv.Itoa(len(right)), markedB))}
			for _, name := range shown {
				row = append(row, fromTo(a.cell(k, name), b.cell(k, name)))
			}
			t.Add(row...)
		}
		all = append(all, t)
	}
	return all
}

// cell is the median of a figure, with a star where it alone is late.
func (c cells) cell(k cellKey, name string) string {
	_, marked := c.of(k.arm, k.load)
	return starred(figureText(name, c.spread(k.arm, k.load, name).middle), !marked && c.marked(k.arm, k.load, name))
}

// starred marks what is of blocks that are not judged.
func starred(text string, marked bool) string {
	if marked {
		return text + " *"
	}
	return text
}

// errorTable counts calls without an answer by what became of them.
func (r Run) errorTable(all cells) Table {
	t := Table{Title: "Calls without an answer in all blocks, by status.", Columns: columnsOf("load", "arm"), PageOnly: true}
	kinds := map[string]int64{}
	for i := range r.Result.Blocks {
		maps.Copy(kinds, r.Result.Blocks[i].Errors)
	}
	names := slices.Sorted(maps.Keys(kinds))
	for _, name := range names {
		t.Columns = append(t.Columns, Column{Name: name, Number: true})
	}
	for _, key := range keysOf(r.Result, all, all) {
		sum := map[string]int64{}
		for _, b := range all[key] {
			for kind, n := range b.Errors {
				sum[kind] += n
			}
		}
		row := []string{key.load, key.arm}
		for _, name := range names {
			row = append(row, goal.Count(sum[name]))
		}
		if len(sum) > 0 {
			t.Add(row...)
		}
	}
	return t
}

func (r Run) markTable() Table {
	t := Table{Columns: columnsOf("load", "arm", "#round", "why")}
	for i := range r.Result.Blocks {
		if b := &r.Result.Blocks[i]; !b.Judged() {
			t.Add(b.Load, b.Arm, fmt.Sprint(b.Round), strings.Join(b.Marks, "; "))
		}
	}
	return t
}

func (r Run) method() Section {
	run := r.Result
	t := Table{Columns: columnsOf("", ""), PageOnly: true, Rows: [][]string{
		{"scenario", run.Scenario},
		{"began", run.Began.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"took", took(run.Took)},
		{"rounds", fmt.Sprint(run.Rounds)},
		{"blocks", goal.Count(int64(len(run.Blocks)))},
		{"seed", fmt.Sprint(run.Seed)},
		{"cabrank", run.Version},
		{"command", run.Command},
	}}
	arms, loads := Table{Columns: columnsOf("arm", "what it is"), PageOnly: true}, Table{Columns: columnsOf("load", "plan"), PageOnly: true}
	for _, a := range run.Arms {
		arms.Add(a.Name, a.About)
	}
	for _, l := range run.Loads {
		loads.Add(l.Name, l.Plan)
	}
	return Section{
		Heading: "How it was measured",
		Text:    slices.Concat([]string{methodText}, run.Machine, run.Notes),
		Tables:  []Table{t, arms, loads},
		Files:   []File{{"The scenario, to repeat it", run.Text}},
	}
}

const methodText = "In each round all arms ran once at each load, one at a time, in random order, with the same arrivals and service times. Latency counts from the moment a call was due in an open loop, from its start in a closed one; failed calls are not in it, and those that were not sent or not answered are in it with the age that they had reached. docs/lab-method.md explains the method, docs/lab-run.md this page."

func took(d time.Duration) string {
	if d < time.Minute {
		return span(d)
	}
	return d.Round(time.Second).String()
}
