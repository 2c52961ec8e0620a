package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Picture is a drawing: rows above each other, over one axis. What is in it lies in percent
// of its width and height, so that it fits every screen, and its text keeps its size.
type Picture struct {
	Title string // the finding
	Y     string // what the height stands for; may be empty
	Note  string
	Words string // the same for those who do not see it

	Legend []Key
	Events []Event
	Rows   []Row
	Ticks  []Tick // of the axis below the rows
	X      string // its label
	Room   int    // letters of the longest tick beside the rows, and one
}

// Key is an entry of a legend: what a pen stands for.
type Key struct {
	Label  string
	Pen    Pen
	Dashed bool
}

// Event is a moment, or a stretch, in which something was done.
type Event struct {
	From, To float64
	Label    string
	// Left and Width are where it is, Right where it ends, from the other side.
	Left, Width, Right float64
}

// Row is one of them, with ticks at its side and marks in it.
type Row struct {
	Kind  string // chart, strip or bar
	Label string
	Ticks []Tick
	Marks []Mark
}

// Tick is a value on an axis.
type Tick struct {
	At    float64
	Label string
}

// Mark is a line, an area or a dot.
type Mark struct {
	Pen  Pen
	Kind string
	Path string // in thousandths
}

// Pen is a color, as the style of the page has it. The hues can be told apart with any kind
// of color vision, and have a contrast of at least 4.5 to 1 (WCAG 2.2), light and dark.
type Pen string

// The pens.
const (
	accent Pen = "accent" // what the picture is about
	wine   Pen = "wine"
	green  Pen = "green"
	purple Pen = "purple"
	ocher  Pen = "ocher"
	gray   Pen = "gray"
)

// penOf is the n-th one, dashed where they begin again.
func penOf(n int) (p Pen, dashed bool) {
	pens := []Pen{accent, wine, green, purple, ocher, gray}
	return pens[n%len(pens)], n >= len(pens)
}

type line struct {
	Key

	dots   bool // at the points
	points []point
}

// point is a value: NaN is a gap. It may have a range, and not be judged.
type point struct {
	x, y, low, high float64
	marked          bool
}

func (l *line) add(x, y float64) { l.points = append(l.points, point{x: x, y: y}) }

// lines draws the last one on top; nil if there is no point above 0.
func (p Picture) lines(x, y axis, all []line) *Picture {
	p.Y, p.Words = y.label, fmt.Sprintf("Lines of %s over %s.", y.label, x.label)
	r := Row{Kind: "chart", Ticks: y.places()}
	for _, t := range r.Ticks {
		p.Room = max(p.Room, utf8.RuneCountInString(t.Label)+1)
	}
	some := false
	for _, l := range all {
		some = some || slices.ContainsFunc(l.points, func(q point) bool { return q.y > 0 })
		if slices.ContainsFunc(l.points, func(q point) bool { return !math.IsNaN(q.y) }) {
			r.Marks = append(r.Marks, l.marks(x, y)...)
			p.Legend = append([]Key{l.Key}, p.Legend...)
			p.Words += fmt.Sprintf(" %s: %s.", l.Label, strings.Join(l.told(x, y), ", "))
		}
	}
	if !some {
		return nil
	}
	p.Rows = []Row{r}
	return p.over(x)
}

// marks are the stretches between gaps, ranges and dots.
func (l *line) marks(x, y axis) (all []Mark) {
	path, kind, move := "", "line", "M"
	if l.Dashed {
		kind = "line dashed"
	}
	for _, q := range l.points {
		if math.IsNaN(q.y) {
			move = "M"
			continue
		}
		at := fmt.Sprintf("%.0f %.0f", 10*x.at(q.x), 1000-10*y.at(q.y))
		if path += move + at; move == "M" {
			path += "h0" // alone it is a dot
		}
		move = "L"
		if q.high > q.low {
			all = append(all, Mark{l.Pen, "span", fmt.Sprintf("M%.0f %.0fV%.0f", 10*x.at(q.x), 1000-10*y.at(q.low), 1000-10*y.at(q.high))})
		}
		if l.dots {
			all = append(all, Mark{l.Pen, "dot", "M" + at + "h0"})
		}
		if q.marked {
			all = append(all, Mark{l.Pen, "hollow", "M" + at + "h0"})
		}
	}
	return append([]Mark{{l.Pen, kind, path}}, all...)
}

// told is what a line says: each of its points if there are dots, else the one next to each tick.
func (l *line) told(x, y axis) (values []string) {
	if l.dots {
		for _, q := range l.points {
			if !math.IsNaN(q.y) {
				values = append(values, judged(y.name(q.y)+" at "+x.name(q.x), q.marked))
			}
		}
		return values
	}
	for _, tick := range x.ticks {
		off := func(q point) float64 { return math.Abs(x.at(q.x) - x.at(tick)) }
		value, near := "none", 5.0
		for _, q := range l.points {
			if off(q) < near {
				value, near = "none", off(q)
				if !math.IsNaN(q.y) {
					value = y.name(q.y)
				}
			}
		}
		values = append(values, value+" at "+x.name(tick))
	}
	return values
}

// judged adds to a value that it is not, if it is marked.
func judged(value string, marked bool) string {
	if marked {
		return value + " (not judged)"
	}
	return value
}

// strip is what happened to one system over time: columns of the parts of a legend, one
// above the other, each for a step.
type strip struct {
	label   string // may be empty
	step    float64
	columns [][]float64
}

// strips draws rows on one scale, with what was done behind all of them.
func (p Picture) strips(x axis, parts []Key, most float64, rows []strip) *Picture {
	p.Legend, p.Words = parts, fmt.Sprintf("Columns over %s.", x.label)
	for i, e := range p.Events {
		p.Events[i].Left, p.Events[i].Width, p.Events[i].Right = x.at(e.From), x.at(e.To)-x.at(e.From), 100-x.at(e.To)
		if e.To > e.From {
			p.Words += fmt.Sprintf(" From %s to %s: %s.", x.name(e.From), x.name(e.To), e.Label)
		} else {
			p.Words += fmt.Sprintf(" At %s: %s.", x.name(e.From), e.Label)
		}
	}
	for _, s := range rows {
		p.Words += strings.TrimSuffix(" "+s.label+".", " .")
		r := Row{Kind: "strip", Label: s.label}
		for upTo, part := range slices.Backward(parts) { // a lower one covers what is below it
			var path strings.Builder
			path.WriteString("M0 1000")
			for i, column := range s.columns {
				sum := 0.0
				for _, v := range column[:upTo+1] {
					sum += v
				}
				fmt.Fprintf(&path, "V%.0fH%.0f", 1000-1000*min(sum/max(most, 1e-9), 1), 10*x.at(s.step*float64(i+1)))
			}
			r.Marks = append(r.Marks, Mark{part.Pen, "area", path.String() + "V1000Z"})
		}
		p.Rows = append(p.Rows, r)
	}
	return p.over(x)
}

// bar is one row of parts that add up; nil values are not known.
type bar struct {
	label, text string
	values      []float64
	marked      bool // not judged: it is hollow
}

// bars draws them over an axis from 0.
func (p Picture) bars(x axis, parts []Key, rows []bar) *Picture {
	p.Legend, p.Words = parts, fmt.Sprintf("Bars of %s.", x.label)
	for _, b := range rows {
		r, sum, told := Row{Kind: "bar", Label: b.label + ": " + b.text}, 0.0, []string(nil)
		kind := "area"
		if b.values == nil {
			told = []string{b.text}
		}
		if b.marked {
			kind = "outline"
		}
		for i, part := range parts[:len(b.values)] {
			to := sum + b.values[i]
			r.Marks = append(r.Marks, Mark{part.Pen, kind, fmt.Sprintf("M%.0f 0V1000H%.0fV0Z", 10*x.at(sum), 10*x.at(to))})
			told = append(told, part.Label+" "+x.name(b.values[i]))
			sum = to
		}
		p.Words += fmt.Sprintf(" %s: %s.", b.label, judged(strings.Join(told, ", "), b.marked))
		p.Rows = append(p.Rows, r)
	}
	return p.over(x)
}

// over puts the axis below, and says it all in words.
func (p Picture) over(x axis) *Picture {
	p.Ticks, p.X = x.places(), x.label
	p.Words = strings.TrimSpace(p.Title + ". " + p.Words + " " + p.Note)
	return &p
}

// axis is one direction of a picture.
type axis struct {
	label    string
	from, to float64
	ticks    []float64
	log      bool // from and to are above 0
	name     func(float64) string
}

// at is where on the axis a value is, in percent. Values beyond are brought to the edge.
func (a axis) at(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(max(v, from)), math.Log(from), math.Log(to)
	}
	return min(max(math.Round(1000*(v-from)/(to-from))/10, 0), 100)
}

func (a axis) places() (all []Tick) {
	for _, v := range a.ticks {
		all = append(all, Tick{a.at(v), a.name(v)})
	}
	return all
}

// linear is an axis from 0 that has room for a value, with ticks at round numbers.
func linear(label string, most float64, name func(float64) string) axis {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/5)))
	step := 10 * power
	for _, n := range []float64{5, 2, 1} {
		if most/5 <= n*power*(1+1e-9) {
			step = n * power
		}
	}
	a := axis{label: label, name: name}
	for i := 0; a.to < most*(1-1e-9); i++ {
		a.to = float64(i) * step
		a.ticks = append(a.ticks, a.to)
	}
	return a
}

// logarithmic is an axis that has room for values above 0, with a tick at each
// power of ten, and at twice and five times that where there are few.
func logarithmic(label string, least, most float64, name func(float64) string) axis {
	if !(least > 0) {
		least = most / 10
	}
	from, to := math.Floor(math.Log10(least)+1e-9), math.Ceil(math.Log10(max(most, least))-1e-9)
	to = max(to, from+1)
	a := axis{label: label, log: true, from: math.Pow(10, from), to: math.Pow(10, to), name: name}
	for d := from; d < to; d++ {
		for _, n := range []float64{1, 2, 5} {
			if n == 1 || to-from <= 2 {
				a.ticks = append(a.ticks, n*math.Pow(10, d))
			}
		}
	}
	a.ticks = append(a.ticks, a.to)
	return a
}
