package lab_test

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/report"
)

//go:embed testdata/picture.svg
var pictureText string

// drawing is a picture of a report as a file of its own, with what the page leaves to the
// browser: where everything is.
type drawing struct {
	Height, Frame int
	Words         string
	Lines         []textLine
	Paths         []path
	Boxes         []box

	y int // what is above is taken
}

type textLine struct {
	X, Y                int
	Class, Anchor, Text string
}

type path struct{ Class, D string }

type box struct {
	X, Y, Width, Height int
	Marks               []report.Mark
}

// Where things are, and what letters take, in units of the view box.
const (
	pictureLeft, pictureRight = 24, 696
	rowHeight                 = 20
	letter, titleLetter       = 7, 9
)

// svg draws a picture. The same one gives the same bytes; it is light or dark as the reader is.
func svg(t *testing.T, p *report.Picture) []byte {
	t.Helper()
	d := drawing{Words: p.Words, y: 16}
	d.text("title", titleLetter, p.Title)
	d.text("", letter, p.Y)
	d.legend(p.Legend)
	left := pictureLeft + letter*p.Room
	for _, e := range p.Events {
		d.text("", letter, e.Label)
	}
	top := d.y + 6
	for _, r := range p.Rows {
		d.row(r, left)
	}
	for _, e := range p.Events {
		from, width := along(left, e.Left), max(along(left, e.Left+e.Width)-along(left, e.Left), 1)
		d.Paths = slices.Insert(d.Paths, 0, path{"band", fmt.Sprintf("M%d %dh%dV%dh-%dZ", from, top, width, d.y, width)})
	}
	d.axis(p, left)
	d.text("", letter, p.Note)
	d.Height, d.Frame = d.y+16, d.y+15
	var b bytes.Buffer
	testkit.Must(t, template.Must(template.New("svg").Parse(pictureText)).Execute(&b, d))
	return b.Bytes()
}

// text puts words into as many lines as they need.
func (d *drawing) text(class string, each int, words string) {
	line := ""
	end := func() {
		if line != "" {
			d.y += rowHeight
			d.Lines = append(d.Lines, textLine{X: pictureLeft, Y: d.y, Class: class, Text: line})
		}
	}
	for word := range strings.FieldsSeq(words) {
		if line != "" && each*utf8.RuneCountInString(line+" "+word) > pictureRight-pictureLeft {
			end()
			line = word
			continue
		}
		line = strings.TrimSpace(line + " " + word)
	}
	end()
}

// legend puts keys side by side, if there are several.
func (d *drawing) legend(keys []report.Key) {
	if len(keys) < 2 {
		return
	}
	x := pictureRight
	for _, k := range keys {
		width := 36 + letter*utf8.RuneCountInString(k.Label)
		if x+width > pictureRight {
			x = pictureLeft
			d.y += rowHeight
		}
		class := string(k.Pen) + " line"
		if k.Dashed {
			class += " dashed"
		}
		d.Paths = append(d.Paths, path{class, "M" + at(x, d.y-4) + "h18"})
		d.Lines = append(d.Lines, textLine{X: x + 24, Y: d.y, Text: k.Label})
		x += width + 8
	}
}

// row puts one row below the last.
func (d *drawing) row(r report.Row, left int) {
	height := map[string]int{"chart": 240, "strip": 36, "bar": 14}[r.Kind]
	d.text("name", letter, r.Label)
	d.y += 6
	if len(r.Ticks) > 0 {
		d.y += rowHeight / 2 // half of the highest tick is above
	}
	for _, tick := range r.Ticks {
		y := d.y + height - int(float64(height)*tick.At/100)
		d.Paths = append(d.Paths, path{"rule", "M" + at(left, y) + "H" + at(pictureRight)})
		d.Lines = append(d.Lines, textLine{X: left - 6, Y: y + 4, Anchor: "end", Text: tick.Label})
	}
	d.Boxes = append(d.Boxes, box{left, d.y, pictureRight - left, height, r.Marks})
	d.y += height
}

// axis ends the rows.
func (d *drawing) axis(p *report.Picture, left int) {
	d.y += 4
	d.Paths = append(d.Paths, path{"axis", "M" + at(left, d.y) + "H" + at(pictureRight)})
	free := 0 // names of ticks do not touch
	for _, tick := range p.Ticks {
		x, half := along(left, tick.At), letter*utf8.RuneCountInString(tick.Label)/2
		d.Paths = append(d.Paths, path{"axis", "M" + at(x, d.y) + "v4"})
		if x-half > free {
			d.Lines = append(d.Lines, textLine{X: x, Y: d.y + 18, Anchor: "middle", Text: tick.Label})
			free = x + half + letter
		}
	}
	d.y += 18
	d.text("", letter, p.X)
}

// along is where on an axis a share in percent is.
func along(left int, percent float64) int { return left + int(float64(pictureRight-left)*percent/100) }

// at is a place in a path.
func at(numbers ...int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

func TestPicture(t *testing.T) {
	text := svg(t, &report.Picture{
		Title: "A < B " + strings.Repeat("and so on ", 20), Y: "seconds", X: "calls/s", Room: 3, Words: `"A" & B`,
		Legend: []report.Key{{Label: "one"}, {Label: strings.Repeat("long ", 20), Dashed: true}},
		Rows:   []report.Row{{Kind: "chart", Ticks: []report.Tick{{At: 50, Label: "2"}}, Marks: []report.Mark{{Kind: "dot", Path: "M0 0h0"}}}, {Kind: "bar", Label: "x"}},
		Ticks:  []report.Tick{{At: 0, Label: "0"}, {At: 1, Label: "hidden"}},
		Events: []report.Event{{Left: 50, Width: 10, Label: "a pause"}},
	})
	for xmlText := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := xmlText.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	testkit.Says(t, string(text), "A &lt; B", `class=" line dashed"`, `d="M0 0h0"`, "prefers-color-scheme:dark", ">2</text>", ">a pause</text>", `class="band"`)
	testkit.Want(t, !strings.Contains(string(text), ">hidden<"), "names of ticks touch")
}
