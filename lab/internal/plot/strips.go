package plot

import (
	"fmt"
	"slices"
	"strings"
)

// Strips is one picture: for each row what happened over time, as columns one above the
// other, with what was done behind all of them. So rows can be compared at a glance.
type Strips struct {
	Title  string // the finding
	Note   string
	X      Axis
	Most   float64 // what is as high as a strip
	Events []Band
	Parts  []BarPart // from the bottom up
	Rows   []Strip
}

// Strip is one row.
type Strip struct {
	Label string
	Text  string // stands behind the label: the row in words
	Step  float64
	// Columns are the values of the parts from the beginning of the x axis on, each for
	// one step. They end where the row does.
	Columns [][]float64
}

const (
	stripPitch  = 62
	stripTop    = 20 // below the label
	stripHeight = 36
)

// Panel is the picture without its title and note, to be put into an HTML page that has
// the Style.
func (s Strips) Panel(size Size) []byte {
	width := wideWidth
	if size == Narrow {
		width = narrowWidth
	}
	above := eventHeight*min(eventRows, len(s.Events)) + 4
	d := drawing{Chart: Chart{X: s.X, Events: s.Events}, left: 6, right: width - 24, top: above, bottom: above + stripPitch*len(s.Rows)}
	d.put(`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, d.bottom+46, escape(s.Title+". "+s.Words()))
	d.events()
	d.ground()
	for i, row := range s.Rows {
		top := d.top + i*stripPitch
		d.put(`<text x="%d" y="%d">%s</text>`, d.left, top+stripTop-6, escape(strings.TrimSuffix(row.Label+": "+row.Text, ": ")))
		base := top + stripTop + stripHeight
		d.put(`<path class="rule" d="M%d %dH%d"/>`, d.left, base, d.right)
		for at, part := range slices.Backward(s.Parts) { // a lower one covers what is below it
			d.put(`<g class="%s"><path class="area" d="%s"/></g>`, part.Pen.class(), d.columns(&row, at, base, s.Most))
		}
	}
	d.put("</svg>")
	return d.Bytes()
}

// columns is the outline of a row's parts up to one of them, down to the base.
func (d *drawing) columns(row *Strip, upTo, base int, most float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", d.left, base)
	for i, column := range row.Columns {
		sum := 0.0
		for _, v := range column[:upTo+1] {
			sum += v
		}
		high := stripHeight * min(sum/max(most, 1e-9), 1)
		fmt.Fprintf(&b, "V%sH%s", number(float64(base)-high), number(d.across(row.Step*float64(i+1))))
	}
	fmt.Fprintf(&b, "V%dZ", base)
	return b.String()
}

// Words is the picture for those who do not see it.
func (s Strips) Words() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Columns over %s.", s.X.Label)
	for _, e := range s.Events {
		fmt.Fprintf(&w, " From %s to %s: %s.", s.X.name(e.From), s.X.name(e.To), e.Label)
	}
	for _, row := range s.Rows {
		fmt.Fprintf(&w, " %s: %s.", row.Label, row.Text)
	}
	return strings.TrimSpace(w.String() + " " + s.Note)
}
