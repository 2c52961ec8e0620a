package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
)

// Verdicts is the table of what was compared.
func (r Run) Verdicts() Table {
	t := Table{Columns: []Column{
		{Name: "figure"}, {Name: "load"}, {Name: "arm"}, {Name: "median", Number: true}, {Name: "against"}, {Name: "median", Number: true},
		{Name: "verdict"}, {Name: "pairs", Number: true}, {Name: "p", Number: true}, {Name: ""},
	}}
	verdicts, err := r.verdicts()
	if err != nil {
		return t // the summary says why
	}
	for _, v := range verdicts {
		said, pairs, p, decides := v.cells()
		t.Add(v.comparison.Figure, v.claim.Load, v.claim.Other, figureText(v.claim.Figure, v.other.middle),
			v.claim.Base, figureText(v.claim.Figure, v.base.middle), said, pairs, p, decides)
	}
	return t
}

// cells are the last ones of a row about a verdict.
func (v verdict) cells() (said, pairs, p, decides string) {
	c := v.comparison
	said = strings.TrimPrefix(strings.TrimPrefix(v.words(), c.Figure), ": ")
	pairs = strconv.Itoa(c.Pairs)
	if c.Known < c.Pairs {
		pairs = fmt.Sprintf("%d of %d known", c.Known, c.Pairs)
	}
	if v.decided() {
		p = pText(c.P)
	}
	if v.claim.Primary {
		decides = "decides"
	}
	return strings.TrimSpace(said), pairs, p, decides
}

func pText(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

// columns are the figures that people look at first, in this order.
func columns() []string {
	return []string{"p50", "p95", "p99", "p99.9", "total", "errors", "rate", "cpu_all", "connections", "spread", "over_ideal", "over_ideal_mean", "recovery", "rebalance"}
}

// Figures is the table of all medians that are known, "never" and "no answer" among them.
func (r Run) Figures() Table { return r.figureTable(cellsOf(r.Result)) }

func (r Run) figureTable(all cells) Table {
	t := Table{Columns: []Column{{Name: "load"}, {Name: "arm"}, {Name: "blocks", Number: true}}}
	var shown []string
	for _, name := range columns() {
		if anyKnown(all, name) {
			shown = append(shown, name)
			t.Columns = append(t.Columns, Column{Name: figureName(name), Number: true})
		}
	}
	for _, l := range r.Result.Loads {
		for _, a := range r.Result.Arms {
			blocks, marked := all.of(a.Name, l.Name)
			if len(blocks) == 0 {
				continue
			}
			row := []string{l.Name, a.Name, starred(strconv.Itoa(len(blocks)), marked)}
			for _, name := range shown {
				row = append(row, figureText(name, spreadOf(blocks, name).middle))
			}
			t.Add(row...)
		}
	}
	return t
}

// starred marks what is of blocks that are not judged.
func starred(text string, marked bool) string {
	if marked {
		return text + " *"
	}
	return text
}

// anyKnown reports whether a figure can be told in any cell: a number, or that it is above
// every number.
func anyKnown(all cells, name string) bool {
	for _, blocks := range all {
		if !math.IsNaN(spreadOf(blocks, name).middle) {
			return true
		}
	}
	return false
}

// errorTable counts calls without an answer by what became of them.
func (r Run) errorTable(all cells) Table {
	t := Table{Columns: []Column{{Name: "load"}, {Name: "arm"}}}
	kinds := map[string]bool{}
	for i := range r.Result.Blocks {
		for kind := range r.Result.Blocks[i].Errors {
			kinds[kind] = true
		}
	}
	names := slices.Sorted(maps.Keys(kinds))
	for _, name := range names {
		t.Columns = append(t.Columns, Column{Name: name, Number: true})
	}
	for _, l := range r.Result.Loads {
		for _, a := range r.Result.Arms {
			sum, some := map[string]int64{}, false
			for _, b := range all[cellKey{a.Name, l.Name}] {
				for kind, n := range b.Errors {
					sum[kind] += n
					some = true
				}
			}
			if !some {
				continue
			}
			row := []string{l.Name, a.Name}
			for _, name := range names {
				row = append(row, count(sum[name]))
			}
			t.Add(row...)
		}
	}
	t.Title = "Calls without an answer in all blocks, by status."
	return t
}

// processTable is what the processes of each kind have used, on average over the blocks.
func (r Run) processTable(all cells) Table {
	t := Table{Title: "Processes: cores in use, most memory and throttling", Columns: []Column{
		{Name: "load"}, {Name: "arm"}, {Name: "processes"}, {Name: "cores in use", Number: true}, {Name: "of", Number: true},
		{Name: "memory", Number: true}, {Name: "throttled", Number: true}, {Name: "for", Number: true},
	}}
	for _, l := range r.Result.Loads {
		for _, a := range r.Result.Arms {
			blocks := all[cellKey{a.Name, l.Name}]
			for _, kind := range kinds(blocks) {
				u := useOf(blocks, kind)
				throttled, held := "", ""
				if u.throttled > 0 {
					throttled, held = count(u.throttled)+" times", span(u.held)
				}
				t.Add(l.Name, a.Name, plural(u.processes, kind), fmt.Sprintf("%.2f", u.cores), u.quotaText(), bytesText(float64(u.memory)), throttled, held)
			}
		}
	}
	return t
}

// kinds are those of the processes of some blocks, in the order of the first one.
func kinds(blocks []*result.Block) (names []string) {
	for _, b := range blocks {
		for _, p := range b.Processes {
			if !slices.Contains(names, p.Kind()) {
				names = append(names, p.Kind())
			}
		}
	}
	return names
}

// use is what all processes of a kind have used over some blocks.
type use struct {
	processes int     // most in a block
	cores     float64 // mean
	memory    int64   // most in a block
	quota     float64 // 0 if one has none
	throttled int64
	held      time.Duration
}

func (u use) quotaText() string {
	if u.quota == 0 {
		return "all"
	}
	return fmt.Sprintf("%.2f", u.quota)
}

func useOf(blocks []*result.Block, kind string) use {
	var u use
	var cpu, length time.Duration
	for _, b := range blocks {
		n, memory, quota, limited := 0, int64(0), 0.0, true
		for _, p := range b.Processes {
			if p.Kind() != kind {
				continue
			}
			n++
			cpu += p.CPU
			u.held += p.ThrottledFor
			u.throttled += p.Throttled
			memory += max(p.RSS, p.PeakRSS)
			quota += p.Quota
			limited = limited && p.Quota > 0
		}
		if limited {
			u.quota = max(u.quota, quota)
		}
		u.processes, u.memory = max(u.processes, n), max(u.memory, memory)
		length += b.Took
	}
	if length > 0 {
		u.cores = cpu.Seconds() / length.Seconds()
	}
	return u
}

// markTable lists the blocks that are not judged.
func (r Run) markTable() Table {
	t := Table{Columns: []Column{{Name: "load"}, {Name: "arm"}, {Name: "round", Number: true}, {Name: "why"}}}
	for i := range r.Result.Blocks {
		if b := &r.Result.Blocks[i]; !b.Judged() {
			t.Add(b.Load, b.Arm, fmt.Sprint(b.Round), strings.Join(b.Marks, "; "))
		}
	}
	return t
}

// mostRows bounds the table of all blocks; run.json has every one.
const mostRows = 500

// blockTable lists all blocks in the order in which they ran.
func (r Run) blockTable() Table {
	names := []string{"p50", "p95", "p99", "total", "errors", "rate", "cpu_all", "recovery"}
	t := Table{Title: "All blocks in the order in which they ran", Columns: []Column{
		{Name: "round", Number: true}, {Name: "load"}, {Name: "arm"},
	}}
	for _, name := range names {
		t.Columns = append(t.Columns, Column{Name: figureName(name), Number: true})
	}
	t.Columns = append(t.Columns, Column{Name: "cores of others", Number: true}, Column{Name: "judged"})
	for i := range r.Result.Blocks {
		b := &r.Result.Blocks[i]
		if i == mostRows {
			t.Title += fmt.Sprintf(", the first %s of %s", count(mostRows), count(int64(len(r.Result.Blocks))))
			break
		}
		row := []string{fmt.Sprint(b.Round), b.Load, b.Arm}
		for _, name := range names {
			row = append(row, figureText(name, b.Figure(name)))
		}
		judged := "yes"
		if !b.Judged() {
			judged = "no"
		}
		t.Add(append(row, fmt.Sprintf("%.2f", b.Noise), judged)...)
	}
	return t
}

// method tells how and where it was measured.
func (r Run) method() Part {
	run := r.Result
	t := Table{Columns: []Column{{Name: ""}, {Name: ""}}}
	t.Add("scenario", run.Scenario)
	t.Add("began", run.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	t.Add("took", took(run.Took))
	t.Add("rounds", fmt.Sprint(run.Rounds))
	t.Add("blocks", count(int64(len(run.Blocks))))
	t.Add("seed", fmt.Sprint(run.Seed))
	t.Add("cabrank", run.Version)
	arms := Table{Columns: []Column{{Name: "arm"}, {Name: "what it is"}}}
	for _, a := range run.Arms {
		arms.Add(a.Name, a.About)
	}
	loads := Table{Columns: []Column{{Name: "load"}, {Name: "plan"}}}
	for _, l := range run.Loads {
		loads.Add(l.Name, l.Plan)
	}
	p := Part{
		Heading: "How it was measured",
		Text:    slices.Concat([]string{methodText}, run.Machine, run.Notes),
		Tables:  tables(t, arms, loads),
	}
	p.Folded = tables(r.blockTable())
	if run.Text != "" {
		p.Files = []File{{Name: "The scenario, to repeat it", Text: run.Text}}
	}
	return p
}

const methodText = "In each round all arms ran once at each load, one at a time, in random order, with the same arrivals and service times. Latency counts from the moment a call was due in an open loop, from its start in a closed one; failed calls are not in it, and those that were not sent or not answered are in it with the age that they had reached. docs/lab-method.md explains the method, docs/lab-results.md this page."

// tables leaves out those without rows.
func tables(all ...Table) (some []Table) {
	for _, t := range all {
		if len(t.Rows) > 0 {
			some = append(some, t)
		}
	}
	return some
}

func took(d time.Duration) string {
	if d < time.Minute {
		return span(d)
	}
	return d.Round(time.Second).String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(int64(n)) + " " + what + "s"
}

// finite reports whether a value can be drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
