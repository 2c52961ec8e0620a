package plot

import "math"

// Chart is one picture: lines over one axis, with what they say in words.
type Chart struct {
	Title string // the finding
	Note  string // what was simulated
	X, Y  Axis
	Band  Band
	Lines []Line // later ones on top
}

// Axis is one direction of a chart.
type Axis struct {
	Label    string // what, and its unit
	From, To float64
	Ticks    []float64
	Log      bool // from and to are above 0
	Percent  bool // values are shares of 1, and shown times 100
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
}

func (l Line) namedAtEnd() bool { return l.At == 0 }

// Point is one value.
type Point struct{ X, Y float64 }

// Add appends a point. A line needs one to be drawn, and its x never falls.
func (l *Line) Add(x, y float64) { l.Points = append(l.Points, Point{x, y}) }

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

// next returns how high a line is at its first point that is not before x, or at its last.
func (l *Line) next(x float64) float64 {
	for _, p := range l.Points {
		if p.X >= x {
			return p.Y
		}
	}
	return l.Points[len(l.Points)-1].Y
}

// Band is a part of the x axis in which something is different.
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
