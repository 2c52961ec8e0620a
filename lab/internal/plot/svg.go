// Package plot draws charts as SVG: lines over one axis, each with its name beside it,
// and the same in words for those who do not see them. The same Chart gives the same
// bytes. It knows nothing of what is measured.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Where things are, in units of the view box.
const (
	pictureWidth  = 720
	pictureHeight = 400

	margin = 24

	nameGap   = 16  // between names at line ends, which begin a little after
	nameAfter = 16  // the line, and
	nameWidth = 122 // are as wide as this at most
)

// Colors of what is not data. The panel is white in dark surroundings too: one
// file serves both, and looks as it was drawn.
const (
	ink   = "#1f2328"
	quiet = "#59636e"
	rule  = "#e4e8ec"
	edge  = "#d1d9e0"
	shade = "#f3f5f7"
)

// SVG returns the picture. The same chart gives the same bytes.
func (c Chart) SVG() []byte {
	d := drawing{Chart: c, left: 68, right: pictureWidth - margin, top: 84, bottom: 318}
	if slices.ContainsFunc(c.Lines, Line.namedAtEnd) {
		d.right -= nameAfter + nameWidth
	}
	d.open()
	d.surroundings()
	for _, l := range c.Lines {
		d.line(l)
	}
	d.names()
	d.put("</svg>\n")
	return d.Bytes()
}

// drawing is a chart on its way to SVG.
type drawing struct {
	bytes.Buffer

	Chart
	left, right int // ends of the x axis
	top, bottom int // ends of the y axis
}

// put writes one element, whose text is escaped already.
func (d *drawing) put(format string, values ...any) { fmt.Fprintf(&d.Buffer, format+"\n", values...) }

func (d *drawing) open() {
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`,
		pictureWidth, pictureHeight)
	d.put(`<title id="title">%s</title>`, escape(d.Title))
	d.put(`<desc id="desc">%s</desc>`, escape(d.Words()))
	d.put(`<style>text{font:13px -apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;fill:%s}`+
		`.title{font-size:17px;font-weight:600;fill:%s}.tick{font-size:12px}`+
		`.name{stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}`+
		`.strong{font-weight:700}polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}</style>`, quiet, ink)
	d.put(`<rect x=".5" y=".5" width="%d" height="%d" rx="8" fill="#fff" stroke="%s"/>`,
		pictureWidth-1, pictureHeight-1, edge)
}

// surroundings are all but the data.
func (d *drawing) surroundings() {
	d.put(`<text class="title" x="%d" y="36">%s</text>`, margin, escape(d.Title))
	d.put(`<text x="%d" y="62">%s</text>`, margin, escape(d.Y.Label))
	if b := d.Band; b.To > b.From {
		left, right := d.across(b.From), d.across(b.To)
		d.put(`<rect x="%s" y="%d" width="%s" height="%d" fill="%s"/>`,
			number(left), d.top, number(right-left), d.bottom-d.top, shade)
		d.put(`<text class="tick" text-anchor="middle" x="%s" y="%d">%s</text>`,
			number((left+right)/2), d.top+15, escape(b.Label))
	}
	for _, tick := range d.Y.Ticks {
		y := number(d.down(tick))
		d.put(`<path d="M%d %sH%d" stroke="%s"/>`, d.left, y, d.right, rule)
		d.put(`<text class="tick" text-anchor="end" x="%d" y="%s" dy="4">%s</text>`, d.left-8, y, d.Y.name(tick))
	}
	d.put(`<path d="M%d %dH%d" stroke="%s"/>`, d.left, d.bottom, d.right, quiet)
	for _, tick := range d.X.Ticks {
		x := number(d.across(tick))
		d.put(`<path d="M%s %dv5" stroke="%s"/>`, x, d.bottom, quiet)
		d.put(`<text class="tick" text-anchor="middle" x="%s" y="%d">%s</text>`, x, d.bottom+20, d.X.name(tick))
	}
	d.put(`<text class="tick" text-anchor="middle" x="%d" y="%d">%s</text>`, (d.left+d.right)/2, d.bottom+39, escape(d.X.Label))
	d.put(`<text class="tick" x="%d" y="%d">%s</text>`, margin, pictureHeight-16, escape(d.Note))
}

func (d *drawing) line(l Line) {
	dash := ""
	if l.Pen == Dashed {
		dash = ` stroke-dasharray="5 5"`
	}
	d.put(`<polyline points="%s" stroke="%s" stroke-width="%s"%s/>`, d.places(l.Points), l.Pen.color(), number(l.Pen.width()), dash)
}

// places are points in the view box.
func (d *drawing) places(points []Point) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(number(d.across(p.X)) + "," + number(d.down(p.Y)))
	}
	return b.String()
}

// names writes the name of each line beside it: where it says, or at its end,
// there as far apart as can be read and joined to it where that is elsewhere.
func (d *drawing) names() {
	var ends []Line
	for _, l := range d.Lines {
		if l.namedAtEnd() {
			ends = append(ends, l)
			continue
		}
		dy := -9.0
		if l.Below {
			dy = 19
		}
		d.name(l, d.across(l.At), d.down(l.height(l.At))+dy)
	}
	sort.SliceStable(ends, func(i, j int) bool { return d.end(ends[i]) < d.end(ends[j]) })
	var wanted []float64
	for _, l := range ends {
		wanted = append(wanted, d.end(l))
	}
	for i, y := range apart(wanted, nameGap) {
		l := ends[i]
		d.put(`<path d="M%d %sL%d %s" stroke="%s"/>`, d.right+3, number(wanted[i]), d.right+nameAfter-4, number(y), l.Pen.color())
		d.name(l, float64(d.right+nameAfter), y+4.5)
	}
}

func (d *drawing) name(l Line, x, y float64) {
	class := "name"
	if l.Pen == Accent {
		class += " strong"
	}
	d.put(`<text class="%s" x="%s" y="%s" style="fill:%s">%s</text>`, class, number(x), number(y), l.Pen.color(), escape(l.Label))
}

// end returns how far down a line ends.
func (d *drawing) end(l Line) float64 { return d.down(l.Points[len(l.Points)-1].Y) }

// across and down return where a value is in the view box.
func (d *drawing) across(v float64) float64 {
	return float64(d.left) + d.X.part(v)*float64(d.right-d.left)
}

func (d *drawing) down(v float64) float64 {
	return float64(d.bottom) - d.Y.part(v)*float64(d.bottom-d.top)
}

// number writes a place to a tenth: nobody sees more, and the file is smaller.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// escape makes text safe inside an element.
func escape(text string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic("internal error: a buffer takes everything") //nolint:forbidigo // it does
	}
	return b.String()
}
