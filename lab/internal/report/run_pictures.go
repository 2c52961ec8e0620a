package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cabrank/cabrank/lab/internal/result"
)

// mostAlone bounds the loads that have bars of their own.
const mostAlone = 6

// main is the picture of the answer: what happened in the load that decides, if something
// was done in it, or else the figure that decides, with all arms.
func (r Run) main(all cells, raw rawParts) *Picture {
	load, figure := r.primary().Load, r.primary().Figure
	if figure == "" {
		figure = tailFigure(all, load)
	}
	if p := raw.strips[load]; p != nil && r.disturbed(load) {
		return p
	}
	for _, name := range []string{figure, "total", "p50", "errors"} {
		if p := r.bars(all, load, name, []part{{name, figureName(name), accent}}); p != nil {
			return p
		}
	}
	return raw.strips[load]
}

// disturbed reports whether something is done to an arm in a load.
func (r Run) disturbed(load string) bool {
	return slices.ContainsFunc(r.Result.Blocks, func(b result.Block) bool { return b.Load == load && len(b.Events) > 0 })
}

// series are loads of one kind that have places of their own on one axis, and those that
// are in none, at most some. Disturbed ones are a kind of their own.
func (r Run) series() (series [][]result.Load, alone []string) {
	type kind struct {
		unit            string
		open, disturbed bool
	}
	var order []kind
	groups := map[kind][]result.Load{}
	for _, l := range r.Result.Loads {
		k := kind{l.Unit, l.Open, r.disturbed(l.Name)}
		taken := slices.ContainsFunc(groups[k], func(other result.Load) bool { return other.X == l.X })
		if l.Unit == "" || l.X <= 0 || taken {
			alone = append(alone, l.Name)
			continue
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], l)
	}
	for _, k := range order {
		loads := groups[k]
		if len(loads) == 1 {
			alone = append(alone, loads[0].Name)
			continue
		}
		slices.SortFunc(loads, func(a, b result.Load) int { return cmp.Compare(a.X, b.X) })
		series = append(series, loads)
	}
	return series, alone[:min(len(alone), mostAlone)]
}

// pictures draw figures of all arms: a chart over each series of loads, and bars at those
// that are in none.
func (r Run) pictures(all cells, names ...string) (pictures []*Picture) {
	series, alone := r.series()
	for _, name := range names {
		for _, loads := range series {
			last := loads[len(loads)-1].Name
			title := fmt.Sprintf("%s at %s: %s", figureName(name), last, r.lowToHigh(all, last, name))
			pictures = append(pictures, byLoad(title, loads, name, r.lines(all)))
		}
		for _, load := range alone {
			pictures = append(pictures, r.bars(all, load, name, []part{{name, figureName(name), accent}}))
		}
	}
	return pictures
}

// latencies are the median and a tail, as far as it is known.
func (r Run) latencies(all cells) []*Picture {
	var names []string
	for _, l := range r.Result.Loads {
		names = append(names, l.Name)
	}
	return r.pictures(all, "p50", tailFigure(all, names...), "total")
}

// lineOf is an arm of a run on its way to a line of a chart.
type lineOf struct {
	Key

	arm   string
	cells cells
}

// lines has one for each arm, the one that stands out on top.
func (r Run) lines(all cells) (lines []lineOf) {
	for _, arm := range slices.Backward(r.drawOrder()) {
		pen, dashed := r.pen(arm)
		lines = append(lines, lineOf{Key{arm, pen, dashed}, arm, all})
	}
	return lines
}

// byLoad is one figure over loads: lines through medians; nil if no line has two points.
func byLoad(title string, loads []result.Load, name string, of []lineOf) *Picture {
	least, most, several := math.Inf(1), 0.0, false
	var all []line
	for _, o := range of {
		l, known := line{Key: o.Key, dots: true}, 0
		for _, load := range loads {
			s := o.cells.spread(o.arm, load.Name, name)
			p := point{x: load.X, y: math.NaN()}
			if s.number() {
				known++
				p.y, p.marked, most = s.middle, o.cells.marked(o.arm, load.Name), max(most, s.middle)
				if finite(s.high) {
					p.low, p.high, most = s.low, s.high, max(most, s.high)
				}
				if s.low > 0 {
					least = min(least, s.low)
				}
			}
			l.points = append(l.points, p)
		}
		several = several || known > 1
		all = append(all, l)
	}
	if !several {
		return nil
	}
	unit := loads[0].Unit
	x := linear(unit, loads[len(loads)-1].X, plainNumber)
	if loads[len(loads)-1].X/loads[0].X > 20 {
		x = logarithmic(unit, loads[0].X, loads[len(loads)-1].X, plainNumber)
	}
	return Picture{Title: title}.lines(x, figureAxis(name, aboutFigure(name), least, most), all)
}

// lowToHigh says what a figure came to at a load: lowest and highest arm.
func (r Run) lowToHigh(all cells, load, name string) string {
	type value struct {
		arm    string
		middle float64
	}
	var values []value
	for _, a := range r.Result.Arms {
		if s := all.spread(a.Name, load, name); s.number() {
			values = append(values, value{besideErrors(starred(a.Name, all.marked(a.Name, load)), name, all.errors(a.Name, load)), s.middle})
		}
	}
	if len(values) == 0 {
		return "not known"
	}
	slices.SortStableFunc(values, func(a, b value) int { return cmp.Compare(a.middle, b.middle) })
	low, high := values[0], values[len(values)-1]
	lowest, highest := figureText(name, low.middle), figureText(name, high.middle)
	if lowest == highest {
		return lowest
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", lowest, low.arm, highest, high.arm)
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

// part is a figure that is a part of a bar.
type part struct {
	figure, label string
	pen           Pen
}

// bars is a figure of all arms at a load, in parts that add up to it; nil if it is 0 or not
// known.
func (r Run) bars(all cells, load, name string, parts []part) *Picture {
	var rows []bar
	most := 0.0
	for _, a := range r.Result.Arms {
		if len(all[cellKey{a.Name, load}]) == 0 {
			continue
		}
		b, sum := bar{label: a.Name, text: "not known", marked: all.marked(a.Name, load)}, 0.0
		if s := all.spread(a.Name, load, name); s.known > 0 {
			b.text = besideErrors(starred(figureText(name, s.middle), b.marked), name, all.errors(a.Name, load))
		}
		for _, p := range parts {
			s := all.spread(a.Name, load, p.figure)
			if !s.number() {
				s.middle = 0
			}
			b.values = append(b.values, s.middle)
			sum += s.middle
		}
		most = max(most, sum)
		rows = append(rows, b)
	}
	if most == 0 {
		return nil
	}
	var keys []Key
	for _, p := range parts {
		keys = append(keys, Key{Label: p.label, Pen: p.pen})
	}
	title := fmt.Sprintf("%s: %s %s", load, figureName(name), r.lowToHigh(all, load, name))
	return Picture{Title: title}.bars(linear(aboutFigure(name), most, axisName(name)), keys, rows)
}

// cost is the CPU of a call at the load that decides, by who has used it.
func (r Run) cost(all cells) *Picture {
	load := r.primary().Load
	parts := []part{{"cpu_workers", "workers", gray}, {"cpu_front", "front", accent}, {"cpu_gateway", "gateway", green}, {"cpu_generator", "callers", ocher}}
	parts = slices.DeleteFunc(parts, func(p part) bool {
		return !slices.ContainsFunc(r.Result.Arms, func(a result.Arm) bool { return all.spread(a.Name, load, p.figure).number() })
	})
	return r.bars(all, load, "cpu_all", parts)
}
