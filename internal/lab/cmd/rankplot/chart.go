package main

import "math"

// chart is one picture: lines over one axis, with what they say in words.
type chart struct {
	title string // the finding
	note  string // what was simulated
	x, y  axis
	band  band
	lines []line // later ones on top
}

// axis is one direction of a chart.
type axis struct {
	label    string // what, and its unit
	from, to float64
	ticks    []float64
	log      bool // from and to are above 0
	percent  bool // values are shares of 1, and shown times 100
}

// part returns where on the axis a value is: 0 at its beginning, 1 at its end.
// Values beyond are brought to the edge.
func (a axis) part(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(max(v, from)), math.Log(from), math.Log(to)
	}
	return min(max((v-from)/(to-from), 0), 1)
}

// line is what one system came to.
type line struct {
	label string
	pen   pen
	// at is the x at which the label stands on the line, or below it; with 0 it
	// is at the line's end.
	at     float64
	below  bool
	points []point
}

func (l line) namedAtEnd() bool { return l.at == 0 }

type point struct{ x, y float64 }

func (l *line) add(x, y float64) { l.points = append(l.points, point{x, y}) }

// height returns how high a line is at x, between its points by a straight line.
func (l *line) height(x float64) float64 {
	before := l.points[0]
	for _, p := range l.points {
		if p.x >= x {
			if p.x == before.x {
				return p.y
			}
			return before.y + (p.y-before.y)*(x-before.x)/(p.x-before.x)
		}
		before = p
	}
	return before.y
}

// next returns how high a line is at its first point that is not before x, or at
// its last one.
func (l *line) next(x float64) float64 {
	for _, p := range l.points {
		if p.x >= x {
			return p.y
		}
	}
	return l.points[len(l.points)-1].y
}

// band is a part of the x axis in which something is different.
type band struct {
	from, to float64
	label    string
}

// pen is how a line is drawn. The hues can be told apart with any kind of color
// vision, and every line has its name beside it.
type pen uint8

const (
	accent pen = iota // what the picture is about
	wine
	green
	purple
	ocher
	gray
	dashed // what nothing can be better than
)

// color is dark enough for text on white (WCAG 2.2, 4.5 to 1).
func (p pen) color() string {
	switch p {
	case accent:
		return "#0060b0"
	case wine:
		return "#a8204a"
	case green:
		return "#117733"
	case purple:
		return "#8a3ffc"
	case ocher:
		return "#a05a00"
	case gray:
		return "#6e7781"
	case dashed:
	}
	return "#1f2328"
}

// width is that of the stroke, in units of the view box.
func (p pen) width() float64 {
	switch p {
	case accent:
		return 4
	case dashed:
		return 1.4
	default:
		return 2
	}
}
