package report

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// pen is how an arm is drawn in all charts: the arm of the primary claim stands out.
func (r Run) pen(arm string) (p plot.Pen, broken bool) {
	place := 0
	order := r.drawOrder()
	for i, name := range order {
		if name == arm {
			place = i
		}
	}
	pens := []plot.Pen{plot.Accent, plot.Wine, plot.Green, plot.Purple, plot.Ocher, plot.Gray}
	return pens[place%len(pens)], place >= len(pens)
}

// drawOrder is the arms, those of the primary claim first.
func (r Run) drawOrder() []string {
	var names []string
	for _, c := range r.Result.Claims {
		if c.Primary {
			names = append(names, c.Other, c.Base)
		}
	}
	for _, a := range r.Result.Arms {
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// mainLoad is the load that the primary claim speaks of, or the last one.
func (r Run) mainLoad() string {
	for _, c := range r.Result.Claims {
		if c.Primary {
			return c.Load
		}
	}
	if n := len(r.Result.Loads); n > 0 {
		return r.Result.Loads[n-1].Name
	}
	return ""
}

// series are loads of one kind that have places of their own on one axis. Those in which
// something is done to an arm are a kind of their own.
func (r Run) series() [][]result.Load {
	type kind struct {
		unit            string
		open, disturbed bool
	}
	groups := map[kind][]result.Load{}
	var order []kind
	disturbed := r.disturbed()
	for _, l := range r.Result.Loads {
		k := kind{l.Unit, l.Open, disturbed[l.Name]}
		taken := slices.ContainsFunc(groups[k], func(other result.Load) bool { return other.X == l.X })
		if l.Unit == "" || l.X <= 0 || taken {
			continue
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], l)
	}
	var all [][]result.Load
	for _, k := range order {
		if loads := groups[k]; len(loads) > 1 {
			sort.Slice(loads, func(i, j int) bool { return loads[i].X < loads[j].X })
			all = append(all, loads)
		}
	}
	return all
}

// disturbed are the loads in which something is done to an arm.
func (r Run) disturbed() map[string]bool {
	loads := map[string]bool{}
	for i := range r.Result.Blocks {
		if b := &r.Result.Blocks[i]; len(b.Events) > 0 {
			loads[b.Load] = true
		}
	}
	return loads
}

// alone are the loads that are in no series, the main one first, and at most some.
func (r Run) alone() (names []string) {
	inSeries := map[string]bool{}
	for _, loads := range r.series() {
		for _, l := range loads {
			inSeries[l.Name] = true
		}
	}
	for _, l := range r.Result.Loads {
		if !inSeries[l.Name] {
			names = append(names, l.Name)
		}
	}
	return names[:min(len(names), mostAlone)]
}

// mostAlone bounds the loads that have bars of their own.
const mostAlone = 6

// lineOf is an arm of a run on its way to a line of a chart.
type lineOf struct {
	label, arm string
	pen        plot.Pen
	broken     bool
	cells      cells
}

// byLoad is the chart of one figure over loads: lines through medians, the last one on
// top. It is false if no line has two points.
func byLoad(loads []result.Load, name string, lines []lineOf) (plot.Chart, bool) {
	c := plot.Chart{X: loadAxis(loads)}
	least, most := math.Inf(1), 0.0
	for _, of := range lines {
		line := plot.Line{Label: of.label, Dots: true, Pen: of.pen, Broken: of.broken}
		for _, l := range loads {
			s := of.cells.spread(of.arm, l.Name, name)
			if !s.number() {
				line.Break()
				continue
			}
			if of.cells.marked(of.arm, l.Name) {
				line.AddMarked(l.X, s.middle)
			} else {
				line.Add(l.X, s.middle)
			}
			most = max(most, s.middle)
			if finite(s.high) && s.high > s.low {
				line.Spans = append(line.Spans, plot.Span{X: l.X, Low: s.low, High: s.high})
				most = max(most, s.high)
			}
			if s.low > 0 {
				least = min(least, s.low)
			}
		}
		if len(line.Points) > 0 {
			c.Lines = append(c.Lines, line)
		}
	}
	c.Y = figureAxis(name, aboutFigure(name), least, most)
	several := slices.ContainsFunc(c.Lines, func(l plot.Line) bool { return len(l.Points) > 1 })
	return c, several
}

// byLoad has a line for each arm.
func (r Run) byLoad(all cells, loads []result.Load, name string) (plot.Chart, bool) {
	var lines []lineOf
	for _, arm := range slices.Backward(r.drawOrder()) {
		pen, broken := r.pen(arm)
		lines = append(lines, lineOf{label: arm, arm: arm, pen: pen, broken: broken, cells: all})
	}
	c, ok := byLoad(loads, name, lines)
	last := loads[len(loads)-1].Name
	c.Title = fmt.Sprintf("%s at %s: %s", figureName(name), last, r.lowToHigh(all, last, name))
	return c, ok
}

// lowToHigh says what a figure came to at a load: lowest and highest arm.
func (r Run) lowToHigh(all cells, load, name string) string {
	type value struct {
		arm string
		s   spread
	}
	var values []value
	for _, a := range r.Result.Arms {
		if s := all.spread(a.Name, load, name); s.number() {
			values = append(values, value{besideErrors(starred(a.Name, all.marked(a.Name, load)), name, all.errors(a.Name, load)), s})
		}
	}
	if len(values) == 0 {
		return "not known"
	}
	sort.SliceStable(values, func(i, j int) bool { return values[i].s.middle < values[j].s.middle })
	low, high := values[0], values[len(values)-1]
	lowest, highest := figureText(name, low.s.middle), figureText(name, high.s.middle)
	if lowest == highest {
		return lowest
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", lowest, low.arm, highest, high.arm)
}

func aboutFigure(name string) string {
	f, _ := result.Known(name)
	switch f.Unit {
	case result.Seconds, result.Number:
		return f.Name + ": " + f.About
	default:
		return f.About
	}
}

// loadAxis has a place for each load.
func loadAxis(loads []result.Load) plot.Axis {
	least, most := loads[0].X, loads[len(loads)-1].X
	if most/least > 20 {
		a := decades(loads[0].Unit, least, most)
		a.Format = plainNumber
		return a
	}
	a := upTo(loads[0].Unit, most)
	a.Format = plainNumber
	return a
}

// figureAxis is one for a figure: logarithmic where values are far apart.
func figureAxis(name, label string, least, most float64) plot.Axis {
	f, _ := result.Known(name)
	far := most/least > 30 && (f.Unit == result.Seconds || f.Unit == result.CPUSeconds || f.Unit == result.Number)
	a := upTo(label, most)
	if far {
		a = decades(label, least, most)
	}
	a.Format = func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case f.Unit == result.Share:
			return plainNumber(100*v) + " %"
		case f.Unit == result.Number || f.Unit == result.PerSecond:
			return plainNumber(v)
		}
		return figureText(name, v)
	}
	return a
}

// plainNumber is a number as short as it can be: 0.5, 20, 1,000.
func plainNumber(v float64) string {
	if v == math.Trunc(v) {
		return count(int64(v))
	}
	return fmt.Sprintf("%.4g", v)
}

func (r Run) latencyByLoad(all cells) (charts []plot.Chart) {
	for _, loads := range r.series() {
		for _, name := range []string{"p50", tailFigure(all, namesOf(loads)...)} {
			if c, ok := r.byLoad(all, loads, name); ok {
				charts = append(charts, c)
			}
		}
	}
	return charts
}

// tailFigure is the highest quantile, at most p99, that some arm knows at two of the
// loads, or at one where there is only one.
func tailFigure(all cells, loads ...string) string {
	for _, name := range []string{"p99", "p95"} {
		known := map[string]bool{}
		for key, blocks := range all {
			if slices.Contains(loads, key.load) && spreadOf(blocks, name).known > 0 {
				known[key.load] = true
			}
		}
		if len(known) >= min(2, len(loads)) {
			return name
		}
	}
	return "p90"
}

func namesOf(loads []result.Load) (names []string) {
	for _, l := range loads {
		names = append(names, l.Name)
	}
	return names
}

func (r Run) errorsByLoad(all cells) []plot.Chart { return r.oneByLoad(all, "errors") }
func (r Run) spreadByLoad(all cells) []plot.Chart { return r.oneByLoad(all, "spread") }

func (r Run) costByLoad(all cells) []plot.Chart {
	return append(r.oneByLoad(all, "cpu_all"), r.oneByLoad(all, "connections")...)
}

// oneByLoad draws a figure over each series of loads, if there is something to see.
func (r Run) oneByLoad(all cells, name string) (charts []plot.Chart) {
	for _, loads := range r.series() {
		c, ok := r.byLoad(all, loads, name)
		if ok && someAbove(c.Lines) {
			charts = append(charts, c)
		}
	}
	return charts
}

// someAbove reports whether any point is above 0.
func someAbove(lines []plot.Line) bool {
	for _, l := range lines {
		for _, p := range l.Points {
			if p.Y > 0 {
				return true
			}
		}
	}
	return false
}

// latencyBars compares the arms at the loads that have no line through them.
func (r Run) latencyBars(all cells) (bars []plot.Bars) {
	for _, load := range r.alone() {
		bars = append(bars, r.bars(all, load, "total")...)
		bars = append(bars, r.bars(all, load, tailFigure(all, load))...)
	}
	return bars
}

// errorBars are the same for errors.
func (r Run) errorBars(all cells) (bars []plot.Bars) {
	for _, load := range r.alone() {
		bars = append(bars, r.bars(all, load, "errors")...)
	}
	return bars
}

// bars is one figure of all arms at a load; none if it is 0 or not known.
func (r Run) bars(all cells, load, name string) []plot.Bars {
	b := plot.Bars{Title: fmt.Sprintf("%s: %s %s", load, figureName(name), r.lowToHigh(all, load, name)), Parts: []plot.BarPart{{Label: name, Pen: plot.Accent}}}
	most := 0.0
	for _, a := range r.Result.Arms {
		if len(all[cellKey{a.Name, load}]) == 0 {
			continue
		}
		row := plot.Bar{Label: a.Name, Text: "not known", Marked: all.marked(a.Name, load)}
		if s := all.spread(a.Name, load, name); s.known > 0 {
			row.Text = besideErrors(starred(figureText(name, s.middle), row.Marked), name, all.errors(a.Name, load))
			if s.number() {
				row.Values = []float64{s.middle}
				most = max(most, s.middle)
			}
		}
		b.Rows = append(b.Rows, row)
	}
	if most == 0 {
		return nil
	}
	b.X = figureAxis(name, aboutFigure(name), most, most)
	return []plot.Bars{b}
}

// costBars is the CPU of a call at the main load, by who has used it.
func (r Run) costBars(all cells) []plot.Bars {
	load := r.mainLoad()
	type part struct {
		figure, label string
		pen           plot.Pen
	}
	parts := []part{{"cpu_workers", "workers", plot.Gray}, {"cpu_front", "front", plot.Accent}, {"cpu_gateway", "gateway", plot.Green}, {"cpu_generator", "callers", plot.Ocher}}
	b := plot.Bars{Title: fmt.Sprintf("%s: CPU per call %s", load, r.lowToHigh(all, load, "cpu_all"))}
	parts = slices.DeleteFunc(parts, func(p part) bool {
		return !slices.ContainsFunc(r.Result.Arms, func(a result.Arm) bool { return all.spread(a.Name, load, p.figure).number() })
	})
	for _, p := range parts {
		b.Parts = append(b.Parts, plot.BarPart{Label: p.label, Pen: p.pen})
	}
	most := 0.0
	for _, a := range r.Result.Arms {
		row, sum := plot.Bar{Label: a.Name, Marked: all.marked(a.Name, load)}, 0.0
		for _, p := range parts {
			v := all.spread(a.Name, load, p.figure).middle
			if !finite(v) {
				v = 0
			}
			row.Values = append(row.Values, v)
			sum += v
		}
		if sum > 0 {
			row.Text = starred(seconds(sum), row.Marked)
			b.Rows = append(b.Rows, row)
			most = max(most, sum)
		}
	}
	if len(b.Rows) == 0 {
		return nil
	}
	b.X = figureAxis("cpu_all", "CPU of one answered call", most, most)
	return []plot.Bars{b}
}

// timeAxis is one in seconds.
func timeAxis(length time.Duration) plot.Axis {
	a := upTo("seconds since the counted part began", length.Seconds())
	a.Format = plainNumber
	return a
}
