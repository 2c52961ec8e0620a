package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/whatif"
)

// Figures is the table of what workers behind Cabrank would give, with the p99 of the
// other policies beside it.
func (w WhatIf) Figures() Table {
	t := Table{Title: "On the right p99 behind other balancers."}
	for _, name := range []string{"slots", "workers", "load", "p50", "p95", "p99", "no answer"} {
		t.Columns = append(t.Columns, Column{Name: name, Number: true})
	}
	if len(w.Thresholds) > 0 {
		t.Columns = append(t.Columns, Column{Name: "goal"})
	}
	for _, p := range whatif.Policies()[1:] {
		t.Columns = append(t.Columns, Column{Name: shortName(p), Number: true})
	}
	for _, slots := range w.slots() {
		for _, c := range w.column(slots, whatif.Cabrank) {
			cells := []string{count(int64(c.Slots)), count(int64(c.Workers)), comes(c)}
			for _, share := range []float64{0.5, 0.95, 0.99} {
				cells = append(cells, figure(c, share))
			}
			cells = append(cells, noAnswer(c))
			if len(w.Thresholds) > 0 {
				cells = append(cells, goalOf(c))
			}
			for _, p := range whatif.Policies()[1:] {
				cells = append(cells, figure(w.cell(c, p), 0.99))
			}
			t.Add(cells...)
		}
	}
	return t
}

// overload stands where a figure would grow for as long as the load lasts.
const overload = "overload"

// comes is the load, which may be above all that can be done.
func comes(c whatif.Cell) string { return fmt.Sprintf("%.0f %%", 100*c.Load) }

func figure(c whatif.Cell, share float64) string {
	switch {
	case c.Overload:
		return overload
	case !tells(c, share):
		return "too few"
	}
	return span(quantileOf(c, share))
}

func noAnswer(c whatif.Cell) string {
	if c.Overload {
		return overload
	}
	return percent(c.Failed)
}

func goalOf(c whatif.Cell) string {
	if c.Overload {
		return "missed"
	}
	return string(c.Judgement.Verdict)
}

// shortName fits over a column.
func shortName(p whatif.Policy) string {
	if p == whatif.P2C {
		return "two choices"
	}
	return p.String()
}

// Unanswered is the table of calls without an answer by policy; no rows if there are
// none.
func (w WhatIf) Unanswered() Table {
	t := Table{
		Title:   "Share of the calls that get no answer. Cabrank refuses early what would come too late; shed is this part.",
		Columns: []Column{{Name: "slots", Number: true}, {Name: "workers", Number: true}, {Name: "load", Number: true}, {Name: "cabrank", Number: true}, {Name: "of it shed", Number: true}},
	}
	for _, p := range whatif.Policies()[1:] {
		t.Columns = append(t.Columns, Column{Name: shortName(p), Number: true})
	}
	lost := false
	for _, slots := range w.slots() {
		for _, c := range w.column(slots, whatif.Cabrank) {
			row := []string{count(int64(c.Slots)), count(int64(c.Workers)), comes(c), noAnswer(c), percent(c.Shed)}
			lost = lost || c.Failed > 0
			for _, p := range whatif.Policies()[1:] {
				other := w.cell(c, p)
				row = append(row, noAnswer(other))
				lost = lost || other.Failed > 0
			}
			t.Add(row...)
		}
	}
	if !lost {
		t.Rows = nil
	}
	return t
}

// Page returns the report.
func (w WhatIf) Page() Page {
	p := Page{Title: fmt.Sprintf("What if: %s at %s", w.Service, perSecond(w.Rate)), Summary: w.Summary()}
	for _, slots := range w.slots() {
		part := Part{Heading: "By the number of workers"}
		switch {
		case slots > 1:
			part.Heading += fmt.Sprintf(", %d slots each", slots)
		case len(w.slots()) > 1:
			part.Heading += ", 1 slot each"
		}
		part.Charts = w.charts(slots)
		if len(part.Charts) > 0 {
			p.Parts = append(p.Parts, part)
		}
	}
	tables := []Table{w.Figures()}
	if t := w.Unanswered(); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	p.Parts = append(p.Parts,
		Part{Heading: "Figures", Text: []string{"Latencies are those of calls that are answered, from when they were due. Load is the work that comes over what the workers can do. The columns on the right are p99 with the same workers behind a balancer that chooses when a call comes; the call then waits at that worker."}, Tables: tables},
		Part{Heading: "How it was found out", Text: w.method(), Tables: []Table{w.facts()}},
	)
	return p
}

// method tells what was simulated.
func (w WhatIf) method() []string {
	text := []string{
		"Calls were drawn: arrivals by chance (a Poisson process), and for each a service time out of the calibration. The code of Cabrank's queue gave them to workers under a virtual clock; all numbers of workers and all policies got the same calls. Nothing of this was measured under load.",
		"Left out: that one slow call makes the next one slow, that workers on one machine share its processors in another way than in the calibration, and the network between balancer and workers. A service that waits (for a database, for others) is told well, one that computes less so.",
		"Handlers run to their end when their caller has gone, as in Ruby and in Python's threads.",
	}
	return append(text, w.Machine...)
}

func (w WhatIf) facts() Table {
	t := Table{Columns: []Column{{Name: ""}, {Name: ""}}}
	t.Add("began", w.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	t.Add("rate", perSecond(w.Rate))
	timeout := "none"
	if w.Timeout > 0 {
		timeout = span(w.Timeout)
	}
	t.Add("deadline of a call", timeout)
	t.Add("queue of Cabrank", fmt.Sprintf("%s, for at most %s", calls(int64(w.Queue.Length)), span(w.Queue.Timeout)))
	t.Add("calls counted in each cell", count(int64(w.Calls)))
	t.Add("seed", fmt.Sprint(w.Seed))
	return t
}

// charts are p99, and the share without an answer, by the number of workers.
func (w WhatIf) charts(slots int) []plot.Chart {
	cells := w.column(slots, whatif.Cabrank)
	if len(cells) < 2 {
		return nil
	}
	note := fmt.Sprintf("Simulated: %s in each point, Poisson arrivals at %s.", calls(int64(w.Calls)), perSecond(w.Rate))
	x := upTo("workers", float64(cells[len(cells)-1].Workers))
	var charts []plot.Chart
	if lines := w.lines(slots, func(c whatif.Cell) (float64, bool) {
		return quantileOf(c, 0.99).Seconds(), !c.Overload && tells(c, 0.99)
	}); len(lines) > 0 {
		charts = append(charts, w.tails(slots, lines, x, note))
	}
	lost := w.lines(slots, func(c whatif.Cell) (float64, bool) { return c.Failed, !c.Overload })
	if most := highest(lost); most > 0 {
		y := upTo("calls without an answer, %", 100*most)
		y.To, y.Percent = y.To/100, true
		for i := range y.Ticks {
			y.Ticks[i] /= 100
		}
		charts = append(charts, plot.Chart{Title: "Calls that get no answer", Note: note, X: x, Y: y, Lines: lost})
	}
	return charts
}

// tails is the chart of p99; lines are in seconds.
func (w WhatIf) tails(slots int, lines []plot.Line, x plot.Axis, note string) plot.Chart {
	title := "p99 by the number of workers"
	if n := w.size(slots, whatif.Cabrank).Workers; n > 0 {
		title = fmt.Sprintf("From %d on %s", n, strings.Join(w.Thresholds, " and "))
	}
	low, high := lowest(lines), highest(lines)
	if limit, ok := w.limit(); ok {
		lines = append(lines, plot.Line{Label: "limit", Pen: plot.Dashed, Points: []plot.Point{{X: x.From, Y: limit.Seconds()}, {X: x.To, Y: limit.Seconds()}}})
		low, high = min(low, limit.Seconds()), max(high, limit.Seconds())
	}
	for i := range lines {
		for j := range lines[i].Points {
			lines[i].Points[j].Y *= 1000
		}
	}
	y := upTo("p99, ms", 1000*high)
	if high > 5*low {
		y = decades("p99, ms (log scale)", 1000*low, 1000*high)
	}
	return plot.Chart{Title: title, Note: note, X: x, Y: y, Lines: lines}
}

// limit is what the thresholds allow p99, if they do.
func (w WhatIf) limit() (time.Duration, bool) {
	for _, text := range w.Thresholds {
		if limit, is := strings.CutPrefix(text, "p99<"); is {
			d, err := time.ParseDuration(strings.TrimPrefix(limit, "="))
			return d, err == nil
		}
	}
	return 0, false
}

// lines are those of all policies that have a point, Cabrank on top.
func (w WhatIf) lines(slots int, of func(whatif.Cell) (float64, bool)) (lines []plot.Line) {
	pens := []plot.Pen{plot.Accent, plot.Ocher, plot.Green, plot.Wine, plot.Gray}
	for i, p := range whatif.Policies() {
		line := plot.Line{Label: shortName(p), Pen: pens[i]}
		for _, c := range w.column(slots, p) {
			if y, ok := of(c); ok {
				line.Add(float64(c.Workers), y)
			} else {
				line.Break()
			}
		}
		if len(line.Points) > 0 {
			lines = append([]plot.Line{line}, lines...)
		}
	}
	return lines
}

func highest(lines []plot.Line) (most float64) {
	for _, l := range lines {
		for _, p := range l.Points {
			most = max(most, p.Y)
		}
	}
	return most
}

func lowest(lines []plot.Line) float64 {
	least := highest(lines)
	for _, l := range lines {
		for _, p := range l.Points {
			least = min(least, p.Y)
		}
	}
	return least
}
