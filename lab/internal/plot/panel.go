package plot

import (
	"fmt"
	"slices"
	"sort"
	"unicode/utf8"
)

// Size is how wide a panel is drawn. Text has the same size in both, so that a page shows
// the one whose width is nearest to that of its screen.
type Size uint8

const (
	// Wide is 704 units; lines have their names at their ends.
	Wide Size = iota
	// Narrow is 360 units, as on a phone; the names stand in a legend of the page.
	Narrow
)

const (
	wideWidth    = 704
	wideHeight   = 320
	narrowWidth  = 360
	narrowHeight = 270

	runeWidth   = 7.3 // of text, about
	mostName    = 24  // letters at a line's end
	eventRows   = 3   // in which the labels of events are written
	eventHeight = 16
	tickRoom    = 22
)

// Panel is the picture without its title, label of the y axis and note, to be put into
// an HTML page that has the Style. Lines without points are left out. The same chart
// gives the same bytes.
func (c Chart) Panel(size Size) []byte {
	c.Lines = slices.DeleteFunc(slices.Clone(c.Lines), func(l Line) bool { return len(l.Points) == 0 })
	d := drawing{Chart: c, left: 12 + d0(c.Y), right: wideWidth - 14, top: 10, bottom: wideHeight - 46}
	width, height := wideWidth, wideHeight
	if size == Narrow {
		width, height = narrowWidth, narrowHeight
		d.right, d.bottom = narrowWidth-14, narrowHeight-46
	} else if len(c.Lines) > 1 {
		d.right -= nameAfter + c.nameRoom()
	}
	if len(c.Events) > 0 {
		d.top += eventHeight * min(eventRows, len(c.Events))
	}
	d.put(`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, escape(c.Title+". "+c.Words()))
	d.ground()
	d.events()
	for i := range c.Lines {
		d.trace(&c.Lines[i])
	}
	if size == Wide && len(c.Lines) > 1 {
		d.lineEnds()
	}
	d.put("</svg>")
	return d.Bytes()
}

// d0 is the room that the names of the ticks take.
func d0(a Axis) int {
	most := 0
	for _, tick := range a.Ticks {
		most = max(most, utf8.RuneCountInString(a.name(tick)))
	}
	return int(runeWidth*float64(most)) + 4
}

// nameRoom is that of the longest name of a line.
func (c Chart) nameRoom() int {
	most := 0
	for _, l := range c.Lines {
		most = max(most, utf8.RuneCountInString(shortened(l.Label)))
	}
	return int(runeWidth * float64(most))
}

func shortened(name string) string {
	if utf8.RuneCountInString(name) <= mostName {
		return name
	}
	return string([]rune(name)[:mostName-1]) + "…"
}

// ground is the axes with their ticks.
func (d *drawing) ground() {
	for _, tick := range d.Y.Ticks {
		y := number(d.down(tick))
		d.put(`<path class="rule" d="M%d %sH%d"/>`, d.left, y, d.right)
		d.put(`<text text-anchor="end" x="%d" y="%s" dy="4">%s</text>`, d.left-8, y, escape(d.Y.name(tick)))
	}
	d.put(`<path class="axis" d="M%d %dH%d"/>`, d.left, d.bottom, d.right)
	free := -1e9 // where the last name of a tick ends
	for _, tick := range d.X.Ticks {
		x, name := d.across(tick), d.X.name(tick)
		d.put(`<path class="axis" d="M%s %dv5"/>`, number(x), d.bottom)
		half := runeWidth * float64(utf8.RuneCountInString(name)) / 2
		if x-half < free {
			continue
		}
		free = x + half + 4
		d.put(`<text text-anchor="middle" x="%s" y="%d">%s</text>`, number(x), d.bottom+tickRoom, escape(name))
	}
	d.put(`<text text-anchor="middle" x="%d" y="%d">%s</text>`, (d.left+d.right)/2, d.bottom+tickRoom+18, escape(d.X.Label))
}

// events are shaded stretches and lines, with what was done above them.
func (d *drawing) events() {
	for i, e := range d.Events {
		left, right := d.across(e.From), d.across(max(e.To, e.From))
		row := i % eventRows
		y := 12 + row*eventHeight
		if right-left > 0.5 {
			d.put(`<rect class="band" x="%s" y="%d" width="%s" height="%d"/>`, number(left), y+4, number(right-left), d.bottom-y-4)
		}
		d.put(`<path class="event" d="M%s %dV%d"/>`, number(left), y+4, d.bottom)
		anchor, x := "start", left
		if left > float64(d.left+d.right)/2 {
			anchor, x = "end", max(right, left)
		}
		d.put(`<text text-anchor="%s" x="%s" y="%d">%s</text>`, anchor, number(x), y, escape(e.Label))
	}
}

// trace is one line with its ranges and dots.
func (d *drawing) trace(l *Line) {
	d.put(`<g class="%s">`, l.Pen.class())
	for _, s := range l.Spans {
		d.put(`<path class="span" d="M%s %sV%s"/>`, number(d.across(s.X)), number(d.down(s.Low)), number(d.down(s.High)))
	}
	dash := ""
	if l.Broken || l.Pen == Dashed {
		dash = ` stroke-dasharray="6 5"`
	}
	for _, points := range l.stretches() {
		d.put(`<polyline points="%s" stroke-width="%s"%s/>`, d.places(points), number(l.Pen.width()), dash)
	}
	if l.Dots {
		for i, p := range l.Points {
			d.put(`<circle%s cx="%s" cy="%s" r="4"/>`, hollow(slices.Contains(l.marked, i)), number(d.across(p.X)), number(d.down(p.Y)))
		}
	}
	d.put(`</g>`)
}

// hollow is the class of what is not judged.
func hollow(marked bool) string {
	if marked {
		return ` class="hollow"`
	}
	return ""
}

// lineEnds writes the names of the lines behind the chart, as high as they end. Leaders
// begin behind it, too: one from the last point would look like data.
func (d *drawing) lineEnds() {
	ends := slices.Clone(d.Lines)
	sort.SliceStable(ends, func(i, j int) bool { return d.end(ends[i]) < d.end(ends[j]) })
	var wanted []float64
	for _, l := range ends {
		wanted = append(wanted, d.end(l))
	}
	for i, y := range within(apart(wanted, nameGap), float64(d.top), float64(d.bottom)) {
		l := ends[i]
		d.put(`<g class="%s"><path class="lead" d="M%d %sL%d %s"/>`, l.Pen.class(), d.right+3, number(wanted[i]), d.right+nameAfter-4, number(y))
		d.put(`<text x="%d" y="%s" dy="4.5">%s</text></g>`, d.right+nameAfter, number(y), escape(shortened(l.Label)))
	}
}

// within moves places that lie apart as a whole so that they are in a range, if they fit.
func within(places []float64, low, high float64) []float64 {
	if len(places) == 0 {
		return nil
	}
	move := min(0, high-places[len(places)-1])
	move = max(move, low-places[0])
	for i := range places {
		places[i] += move
	}
	return places
}

// class is the pen's, in Style.
func (p Pen) class() string { return fmt.Sprintf("pen%d", p) }

// Class is that of a text or a box that has the color of the pen in a page with Style.
func (p Pen) Class() string { return p.class() }

// Style is the CSS that a page with panels needs, for light and dark surroundings: every
// hue has a contrast of at least 4.5 to 1 on the page's ground (WCAG 2.2).
const Style = `
.pen0{color:#0060b0}.pen1{color:#a8204a}.pen2{color:#117733}.pen3{color:#8a3ffc}.pen4{color:#a05a00}.pen5{color:#6a727b}.pen6{color:#1f2328}
.plot{--ink:#59636e;--rule:#e4e8ec;--band:#e9ecf0;display:block;width:100%;height:auto}
@media (prefers-color-scheme:dark){
.pen0{color:#6cb6ff}.pen1{color:#ff8fa9}.pen2{color:#57c271}.pen3{color:#c297ff}.pen4{color:#e8a33d}.pen5{color:#9da7b1}.pen6{color:#e6edf3}
.plot{--ink:#9da7b1;--rule:#262c33;--band:#21272e}}
.plot text{font-size:13px;fill:var(--ink)}
.plot g text{fill:currentColor}
.plot .pen0 text{font-weight:700}
.plot path{fill:none}.plot .rule{stroke:var(--rule)}.plot .axis{stroke:var(--ink)}
.plot .band{fill:var(--band)}.plot .event{stroke:var(--ink);stroke-dasharray:3 3}
.plot polyline{fill:none;stroke:currentColor;stroke-linejoin:round;stroke-linecap:round}
.plot .area{fill:currentColor}
.plot .span{stroke:currentColor;stroke-width:6;opacity:.25;stroke-linecap:round}
.plot .lead{stroke:currentColor}.plot circle,.plot g rect{fill:currentColor}
.plot g .hollow{fill:var(--page);stroke:currentColor;stroke-width:2}
`
