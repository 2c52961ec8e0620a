package report

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/goal"
)

// Chart is lines over one axis, as docs show them: a picture that stands alone.
type Chart struct {
	Title string // the finding
	Note  string // what was simulated
	X, Y  Scale
	Band  Event  // in which something is different; no width: there is none
	Lines []Line // later ones on top
}

// Scale is one direction of a chart.
type Scale struct {
	Label    string // what, and its unit
	From, To float64
	Ticks    []float64
	Log      bool // From and To are above 0
	Percent  bool // values are shares of 1, and shown times 100
}

// Line is what one system came to.
type Line struct {
	Key

	points []point
}

// Add appends a point. A line needs one to be drawn, and its x never falls.
func (l *Line) Add(x, y float64) { l.points = append(l.points, point{x: x, y: y}) }

// with are its points, and where it is at ticks between them: the words tell that.
func (l Line) with(ticks []float64) (all []point) {
	for i, to := range l.points {
		for _, x := range ticks {
			if from := l.points[max(i-1, 0)]; from.x < x && x < to.x {
				all = append(all, point{x: x, y: from.y + (to.y-from.y)*(x-from.x)/(to.x-from.x)})
			}
		}
		all = append(all, to)
	}
	return all
}

func (s Scale) axis() axis {
	return axis{label: s.Label, from: s.From, to: s.To, ticks: s.Ticks, log: s.Log, name: func(v float64) string {
		if s.Percent {
			v *= 100
		}
		return goal.Count(int64(math.Round(v)))
	}}
}

//go:embed testdata/chart.svg
var chartText string

// SVG returns the chart as a file. The same chart gives the same bytes.
func (c Chart) SVG() []byte {
	x, p := c.X.axis(), Picture{Title: c.Title, Note: c.Note}
	var all []line
	for _, l := range c.Lines {
		all = append(all, line{Key: l.Key, points: l.with(c.X.Ticks)})
	}
	if e := c.Band; e.To > e.From {
		e.Left, e.Width, e.Right = x.at(e.From), x.at(e.To)-x.at(e.From), 100-x.at(e.To)
		p.Events = []Event{e}
		p.Note = "From " + x.name(e.From) + " to " + x.name(e.To) + ": " + e.Label + ". " + p.Note // in the words
	}
	drawn := p.lines(x, c.Y.axis(), all)
	drawn.Note = c.Note
	return drawn.svg()
}

// Where things are in the file, in pixels of its view box.
const (
	legendTop   = 88 // of the first row of two entries
	legendRow   = 20
	legendWidth = 330
)

func (p *Picture) svg() []byte {
	rows := (len(p.Legend) + 1) / 2
	file := template.Must(template.New("chart").Funcs(template.FuncMap{
		"down":   func(at float64) float64 { return math.Round(10*(100-at)) / 10 },
		"middle": func(e Event) float64 { return e.Left + e.Width/2 },
		"right":  func(entry int) int { return entry % 2 * legendWidth },
		"row":    func(entry int) int { return legendTop + entry/2*legendRow },
		"top":    func(more int) int { return legendTop + rows*legendRow + more },
	}).Parse(chartText))
	var b bytes.Buffer
	if err := file.Execute(&b, p); err != nil {
		panic("internal error: a chart does not fit its template: " + err.Error())
	}
	return b.Bytes()
}

// A chart is well-formed whatever its words are, the same at every time, and tells in
// words what it shows.
func TestChart(t *testing.T) {
	rises, level := Line{Key: Key{Label: "rises", Pen: accent}}, Line{Key: Key{Label: "level", Pen: gray, Dashed: true}}
	for _, x := range []float64{0, 10} {
		rises.Add(x, 9*x)
		level.Add(x, 1234)
	}
	c := Chart{
		Title: `a < b & "c"`, Note: "of <nothing>",
		X:    Scale{Label: "x", To: 10, Ticks: []float64{0, 5, 10}, Percent: true},
		Y:    Scale{Label: "y", From: 1, To: 10_000, Ticks: []float64{1, 100, 10_000}, Log: true},
		Band: Event{From: 2, To: 4, Label: "then"}, Lines: []Line{rises, level},
	}
	text := c.SVG()
	testkit.Want(t, bytes.Equal(text, c.SVG()), "the second picture is another one")
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	testkit.Says(t, string(text),
		"rises: 0 at 0, 45 at 500, 90 at 1,000. level: 1,234 at 0,", "From 200 to 400: then. of &lt;nothing&gt;", "a &lt; b &amp;", `class="gray line dashed"`,
		`<text class="tick" x="24" y="407">of &lt;nothing&gt;</text>`, `<rect x="20%" width="20%" height="100%"`, "M0 1000h0L500 587L1000 511",
	)
}
