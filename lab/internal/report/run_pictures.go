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
		if p := bars(load, name, nil, r.arms(all)); p != nil {
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
			title := fmt.Sprintf("%s at %s: %s", figureName(name), last, lowToHigh(last, name, r.arms(all)))
			pictures = append(pictures, byLoad(title, loads, name, r.arms(all)))
		}
		for _, load := range alone {
			pictures = append(pictures, bars(load, name, nil, r.arms(all)))
		}
	}
	return pictures
}

// armOf is an arm of a run on its way to a picture, by the name that it has there.
type armOf struct {
	Key

	arm   string
	cells cells
}

// arms are all of them, that of the primary claim first.
func (r Run) arms(all cells) (arms []armOf) {
	for _, arm := range r.drawOrder() {
		pen, dashed := r.pen(arm)
		arms = append(arms, armOf{Key{arm, pen, dashed}, arm, all})
	}
	return arms
}

func (a armOf) spread(load, name string) spread { return a.cells.spread(a.arm, load, name) }

func (a armOf) marked(load, name string) bool { return a.cells.marked(a.arm, load, name) }

// beside is a text on a figure, with a star or errors beside it where that matters.
func (a armOf) beside(text, load, name string) string {
	return besideErrors(starred(text, a.marked(load, name)), name, a.cells.errors(a.arm, load))
}

// byLoad is one figure over loads: lines through medians, the first one on top; nil if no line
// has two points.
func byLoad(title string, loads []result.Load, name string, of []armOf) *Picture {
	least, most, several := math.Inf(1), 0.0, false
	var all []line
	for _, o := range slices.Backward(of) {
		l, known := line{Key: o.Key, dots: true}, 0
		for _, load := range loads {
			s := o.spread(load.Name, name)
			p := point{x: load.X, y: math.NaN()}
			if s.number() {
				known++
				p.y, p.marked, most = s.middle, o.marked(load.Name, name), max(most, s.middle)
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

// extremes are the ones with the lowest and the highest value.
func extremes[T any, V cmp.Ordered](all []T, value func(T) V) (low, high T) {
	by := func(a, b T) int { return cmp.Compare(value(a), value(b)) }
	return slices.MinFunc(all, by), slices.MaxFunc(all, by)
}

// lowToHigh says what a figure came to at a load: lowest and highest arm.
func lowToHigh(load, name string, of []armOf) string {
	of = slices.DeleteFunc(slices.Clone(of), func(a armOf) bool { return !a.spread(load, name).number() })
	if len(of) == 0 {
		return "not known"
	}
	low, high := extremes(of, func(a armOf) float64 { return a.spread(load, name).middle })
	lowest, highest := figureText(name, low.spread(load, name).middle), figureText(name, high.spread(load, name).middle)
	if lowest == highest {
		return lowest
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", lowest, low.beside(low.Label, load, name), highest, high.beside(high.Label, load, name))
}

// tailFigure is the highest quantile, at most p99, that some arm knows at a load, or at two
// of all loads if that is "".
func tailFigure(all cells, load string) string {
	for _, name := range []string{"p99", "p95"} {
		loads, known := map[string]bool{}, map[string]bool{}
		for key, blocks := range all {
			if load == "" || key.load == load {
				loads[key.load] = true
				if spreadOf(blocks, name).known > 0 {
					known[key.load] = true
				}
			}
		}
		if len(known) > 0 && len(known) >= min(2, len(loads)) {
			return name
		}
	}
	return "p90"
}

// part is a figure that is a part of a bar.
type part struct {
	figure string
	Key
}

// bars is a figure of all arms at a load, in parts that add up to it, or whole without any;
// nil if it is 0 or not known.
func bars(load, name string, parts []part, of []armOf) *Picture {
	if parts == nil {
		parts = []part{{name, Key{Label: figureName(name), Pen: accent}}}
	}
	var keys []Key
	for _, p := range parts {
		keys = append(keys, p.Key)
	}
	var rows []bar
	most := 0.0
	for _, a := range of {
		if len(a.cells[cellKey{a.arm, load}]) == 0 {
			continue
		}
		b, sum := bar{label: a.Label, text: "not known", marked: a.marked(load, name)}, 0.0
		if s := a.spread(load, name); s.known > 0 {
			b.text = a.beside(figureText(name, s.middle), load, name)
		}
		for _, p := range parts {
			s := a.spread(load, p.figure)
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
	title := fmt.Sprintf("%s: %s %s", load, figureName(name), lowToHigh(load, name, of))
	return Picture{Title: title}.bars(linear(aboutFigure(name), most, axisName(name)), keys, rows)
}

// cost is the CPU of a call at the load that decides, by who has used it.
func (r Run) cost(all cells) *Picture {
	load, arms := r.primary().Load, r.arms(all)
	parts := []part{
		{"cpu_workers", Key{Label: "workers", Pen: gray}}, {"cpu_front", Key{Label: "front", Pen: accent}},
		{"cpu_gateway", Key{Label: "gateway", Pen: green}}, {"cpu_generator", Key{Label: "callers", Pen: ocher}},
	}
	parts = slices.DeleteFunc(parts, func(p part) bool {
		return !slices.ContainsFunc(arms, func(a armOf) bool { return a.spread(load, p.figure).number() })
	})
	return bars(load, "cpu_all", parts, arms)
}
