package plot

import (
	"math"
	"slices"
)

// Chart is one picture: lines over one axis, with what they say in words.
type Chart struct {
	Title string // the finding
	Note  string // what was simulated
	X, Y  Axis
	Band  Band
	// Events are moments and stretches at which something was done: only a panel
	// has them.
	Events []Band
	Lines  []Line // later ones on top
}

// Axis is one direction of a chart.
type Axis struct {
	Label    string // what, and its unit
	From, To float64
	Ticks    []float64
	Log      bool // from and to are above 0
	Percent  bool // values are shares of 1, and shown times 100
	// Format writes a value; nil is whole numbers with commas.
	Format func(float64) string
}

// part returns where on the axis a value is: 0 at its beginning, 1 at its end.
// Values beyond are brought to the edge.
func (a Axis) part(v float64) float64 {
	from, to := a.From, a.To
	if a.Log {
		v, from, to = math.Log(max(v, from)), math.Log(from), math.Log(to)
	}
	return min(max((v-from)/(to-from), 0), 1)
}

// Line is what one system came to.
type Line struct {
	Label string
	Pen   Pen
	// At is the x at which the label stands on the line, or below it; with 0 it
	// is at the line's end.
	At     float64
	Below  bool
	Points []Point
	// A panel draws these, too: Broken has gaps, for when there are more lines than
	// pens; Dots marks the points, and Spans are ranges at some of them.
	Broken bool
	Dots   bool
	Spans  []Span

	breaks []int // points that no line leads to
	marked []int // points that are not judged
}

func (l Line) namedAtEnd() bool { return l.At == 0 }

// Point is one value.
type Point struct{ X, Y float64 }

// Span is where a value lay, from run to run.
type Span struct{ X, Low, High float64 }

// Add appends a point. A line needs one to be drawn, and its x never falls.
func (l *Line) Add(x, y float64) { l.Points = append(l.Points, Point{x, y}) }

// AddMarked appends a point that is not judged: its dot is hollow.
func (l *Line) AddMarked(x, y float64) {
	l.marked = append(l.marked, len(l.Points))
	l.Add(x, y)
}

// Break leaves a gap between the last point and the next one.
func (l *Line) Break() { l.breaks = append(l.breaks, len(l.Points)) }

// stretches are the points between gaps, one at least in each.
func (l *Line) stretches() (all [][]Point) {
	from := 0
	for _, to := range append(slices.Clone(l.breaks), len(l.Points)) {
		if to > from {
			all = append(all, l.Points[from:to])
		}
		from = to
	}
	return all
}

// height returns how high a line is at x, between its points by a straight line.
func (l *Line) height(x float64) float64 {
	before := l.Points[0]
	for _, p := range l.Points {
		if p.X >= x {
			if p.X == before.X {
				return p.Y
			}
			return before.Y + (p.Y-before.Y)*(x-before.X)/(p.X-before.X)
		}
		before = p
	}
	return before.Y
}

// next returns how high a line is at its first point that is not before x. In a gap, and
// beyond its ends, that is only so if a point is near, by a twentieth of the axis.
func (l *Line) next(x float64, a Axis) (y float64, ok bool) {
	i := slices.IndexFunc(l.Points, func(p Point) bool { return p.X >= x })
	if i > 0 && !slices.Contains(l.breaks, i) {
		return l.Points[i].Y, true
	}
	if i < 0 {
		i = len(l.Points)
	}
	for _, j := range []int{i, i - 1} {
		if j >= 0 && j < len(l.Points) && math.Abs(a.part(l.Points[j].X)-a.part(x)) <= 0.05 {
			return l.Points[j].Y, true
		}
	}
	return 0, false
}

// Band is a part of the x axis in which something is different, or a moment: then both
// ends are the same.
type Band struct {
	From, To float64
	Label    string
}

// Pen is how a line is drawn. The hues can be told apart with any kind of color
// vision, and every line has its name beside it.
type Pen uint8

// The pens.
const (
	Accent Pen = iota // what the picture is about
	Wine
	Green
	Purple
	Ocher
	Gray
	Dashed // what nothing can be better than
)

// color is dark enough for text on white (WCAG 2.2, 4.5 to 1).
func (p Pen) color() string {
	switch p {
	case Accent:
		return "#0060b0"
	case Wine:
		return "#a8204a"
	case Green:
		return "#117733"
	case Purple:
		return "#8a3ffc"
	case Ocher:
		return "#a05a00"
	case Gray:
		return "#6e7781"
	case Dashed:
	}
	return "#1f2328"
}

// width is that of the stroke, in units of the view box.
func (p Pen) width() float64 {
	switch p {
	case Accent:
		return 4
	case Dashed:
		return 1.4
	default:
		return 2
	}
}
