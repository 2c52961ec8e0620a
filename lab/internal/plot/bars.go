package plot

import (
	"fmt"
	"strings"
)

// Bars is one picture: a bar for each row, made of parts that add up.
type Bars struct {
	Title string // the finding
	Note  string
	X     Axis // from 0
	Parts []BarPart
	Rows  []Bar
}

// BarPart is what one part of every bar stands for.
type BarPart struct {
	Label string
	Pen   Pen
}

// Bar is one row.
type Bar struct {
	Label string
	// Values are those of the parts, in their order, from 0 up.
	Values []float64
	// Marked says that it is not judged: it is hollow.
	Marked bool
	// Text stands behind the label: the sum, in words.
	Text string
}

const (
	barPitch = 46
	barTop   = 22 // below the label
	barThick = 16
)

// Panel is the picture without its title and note, to be put into an HTML page that has
// the Style.
func (b Bars) Panel(size Size) []byte {
	width := wideWidth
	if size == Narrow {
		width = narrowWidth
	}
	d := drawing{Chart: Chart{X: b.X}, left: 6, right: width - 24, top: 4, bottom: 4 + barPitch*len(b.Rows)}
	d.put(`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, d.bottom+46, escape(b.Title+". "+b.Words()))
	for _, tick := range b.X.Ticks {
		d.put(`<path class="rule" d="M%s %dV%d"/>`, number(d.across(tick)), d.top, d.bottom)
	}
	d.ground()
	for i, row := range b.Rows {
		y := d.top + i*barPitch
		d.put(`<text x="%d" y="%d">%s</text>`, d.left, y+barTop-6, escape(strings.TrimSuffix(row.Label+": "+row.Text, ": ")))
		sum := 0.0
		for part, v := range row.Values {
			from, to := d.across(sum), d.across(sum+v)
			d.put(`<g class="%s"><rect%s x="%s" y="%d" width="%s" height="%d"/></g>`,
				b.Parts[part].Pen.class(), hollow(row.Marked), number(from), y+barTop, number(to-from), barThick)
			sum += v
		}
	}
	d.put("</svg>")
	return d.Bytes()
}

// Words is the picture for those who do not see it.
func (b Bars) Words() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Bars of %s.", b.X.Label)
	for _, row := range b.Rows {
		var parts []string
		for i, v := range row.Values {
			parts = append(parts, b.Parts[i].Label+" "+b.X.name(v))
		}
		fmt.Fprintf(&w, " %s: %s.", row.Label, judged(strings.Join(parts, ", "), row.Marked))
	}
	return strings.TrimSpace(w.String() + " " + b.Note)
}
