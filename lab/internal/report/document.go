// Package report says what the lab has shown: in one HTML file that needs no network and
// no JavaScript, and with the same words and tables on a terminal. It measures nothing.
package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// Document is what was found: the answer with one picture, then all that shows it.
type Document struct {
	Title string
	Lead  string // what was asked; may be empty
	// Answer is sentences, of which the first decides; Picture shows it, nil if nothing
	// does; Words are the other sentences.
	Answer   []string
	Picture  *Picture
	Words    []string
	Sections []Section
}

// Section is one part of a document, in the order of the fields. Those but the heading may
// be empty.
type Section struct {
	Heading  string
	Text     []string
	Pictures []*Picture
	Tables   []Table
	Files    []File
}

// File is a text that is shown as it is.
type File struct{ Name, Text string }

// add appends a section without what is empty in it, or the picture of the answer, unless
// nothing is left but words.
func (d *Document) add(s Section) {
	s.Pictures = slices.DeleteFunc(s.Pictures, func(p *Picture) bool { return p == nil || p == d.Picture })
	s.Files = slices.DeleteFunc(s.Files, func(f File) bool { return f.Text == "" })
	s.Tables = slices.DeleteFunc(s.Tables, func(t Table) bool { return len(t.Rows) == 0 })
	if len(s.Pictures)+len(s.Tables)+len(s.Files) > 0 {
		d.Sections = append(d.Sections, s)
	}
}

//go:embed page.html
var pageText string

// HTML returns the document as one file. The same document gives the same bytes.
func (d Document) HTML() []byte {
	together := strings.NewReplacer(" %", "\u00a0%", " ms", "\u00a0ms", " µs", "\u00a0µs") // numbers and units in one line
	page := template.Must(template.New("page").Funcs(template.FuncMap{"text": together.Replace}).Parse(pageText))
	var b bytes.Buffer
	if err := page.Execute(&b, d); err != nil {
		panic("internal error: the page does not fit its template: " + err.Error()) //nolint:forbidigo // the tests fill in every part of it
	}
	return b.Bytes()
}

// Print writes sentences and tables for a terminal, an empty line before each of these.
func (d Document) Print(w io.Writer) error {
	parts := []string{strings.Join(slices.Concat(d.Answer, d.Words), "\n") + "\n"}
	for _, s := range d.Sections {
		for _, t := range s.Tables {
			if !t.PageOnly {
				parts = append(parts, t.text())
			}
		}
	}
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// Table is rows of text under names.
//
// Shape: each row has a cell for each column.
type Table struct {
	Title    string // may be empty
	Columns  []Column
	Rows     [][]string
	PageOnly bool // a terminal does not show it
}

// Column is the head of one.
type Column struct {
	Name   string
	Number bool // stands to the right
}

// columnsOf are those with these names; one that begins with # is of numbers.
func columnsOf(names ...string) (all []Column) {
	for _, name := range names {
		text, number := strings.CutPrefix(name, "#")
		all = append(all, Column{text, number})
	}
	return all
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// mostInLine is how long a cell may be without being broken into lines.
const mostInLine = 32

// Class is how the page shows a cell.
func (t Table) Class(column int, cell string) string {
	switch {
	case t.Columns[column].Number:
		return "n"
	case utf8.RuneCountInString(cell) > mostInLine:
		return "long"
	}
	return ""
}

// text is the table for a terminal: columns as wide as their longest cell, two spaces
// between, none at line ends.
func (t Table) text() string {
	rows := [][]string{make([]string, len(t.Columns))}
	for i, c := range t.Columns {
		rows[0][i] = c.Name
	}
	rows = append(rows, t.Rows...)
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(t.Title + "\n")
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			width := 0
			for _, other := range rows {
				width = max(width, utf8.RuneCountInString(other[i]))
			}
			if !t.Columns[i].Number {
				width = -width
			}
			fmt.Fprintf(&line, "%*s  ", width, cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// figureText writes a figure as people read it.
//
// Shape: v is a number, infinity for what is above every number, or NaN for what is not known.
func figureText(name string, v float64) string {
	f, _ := result.Known(name)
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1) && (name == "recovery" || name == "rebalance"):
		return "never"
	case v == 0 && name == "recovery":
		return "at once"
	case math.IsInf(v, 1) && name == "total":
		return "not all made"
	case math.IsInf(v, 1):
		return "no answer"
	}
	switch f.Unit {
	case result.Seconds, result.CPUSeconds:
		if v == 0 {
			return "0"
		}
		return seconds(v)
	case result.Share:
		return percent(v)
	case result.PerSecond:
		return rate(v) + "/s"
	case result.Bytes:
		return bytesText(v)
	case result.Number:
	}
	if v == math.Trunc(v) && name == "connections" {
		return goal.Count(int64(v))
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// figureName is what a figure is called in a sentence or over a column.
func figureName(name string) string {
	f, _ := result.Known(name)
	return cmp.Or(f.Title, name)
}

func aboutFigure(name string) string {
	f, _ := result.Known(name)
	if f.Unit == result.Seconds || f.Unit == result.Number {
		return f.Name + ": " + f.About
	}
	return f.About
}

func axisName(name string) func(float64) string {
	f, _ := result.Known(name)
	return func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case f.Unit == result.Share:
			return plainNumber(100*v) + " %"
		case f.Unit == result.Number || f.Unit == result.PerSecond:
			return plainNumber(v)
		}
		return figureText(name, v)
	}
}

// figureAxis is logarithmic where values are far apart.
func figureAxis(name, label string, least, most float64) axis {
	f, _ := result.Known(name)
	if most/least > 30 && (f.Unit == result.Seconds || f.Unit == result.CPUSeconds || f.Unit == result.Number) {
		return logarithmic(label, least, most, axisName(name))
	}
	return linear(label, most, axisName(name))
}

func timeAxis(length time.Duration) axis {
	return linear("seconds since the counted part began", length.Seconds(), plainNumber)
}

func seconds(v float64) string { return span(time.Duration(v * float64(time.Second))) }

func bytesText(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.2f GB", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.1f MB", v/1e6)
	default:
		return fmt.Sprintf("%.0f KB", v/1e3)
	}
}

// spread is what a figure came to in the blocks of one arm at one load.
type spread struct {
	low, middle, high float64 // of those that are known; the middle is the median
	known             int     // blocks that tell it
}

// spreadOf looks at all of the blocks that are given.
func spreadOf(blocks []*result.Block, name string) spread {
	var values []float64
	for _, b := range blocks {
		if v := b.Figure(name); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	s := spread{low: math.NaN(), middle: math.NaN(), high: math.NaN(), known: len(values)}
	if len(values) == 0 {
		return s
	}
	slices.Sort(values)
	s.low, s.high = values[0], values[len(values)-1]
	// With an infinite one among the two in the middle it is infinite.
	s.middle = (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	return s
}

func (s spread) number() bool { return finite(s.middle) }

// span writes a duration with three digits, as people read it: 812 µs, 34.1 ms, 1.25 s.
func span(d time.Duration) string {
	length, name := time.Second, "s"
	for i, u := range []time.Duration{time.Millisecond, time.Microsecond, time.Nanosecond} {
		if float64(d) < 999.5*float64(u) {
			length, name = u, []string{"ms", "µs", "ns"}[i]
		}
	}
	if value := float64(d) / float64(length); value < 999.5 {
		return strconv.FormatFloat(value, 'g', 3, 64) + " " + name
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) + " s"
}

func calls(n int64) string {
	return plural(int(n), "call")
}

// percent writes a share of 1 with two digits that matter, and never rounds what is
// not all, or not nothing, to it.
func percent(share float64) string {
	switch p := 100 * share; {
	case share <= 0:
		return "0 %"
	case share >= 1:
		return "100 %"
	case p < 0.01:
		return "< 0.01 %"
	case p > 99.99:
		return "> 99.99 %"
	case p < 1 || p > 99:
		return fmt.Sprintf("%.2f %%", p)
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

// plainNumber is a number as short as it can be: 0.5, 20, 1,000.
func plainNumber(v float64) string {
	if v == math.Trunc(v) {
		return goal.Count(int64(v))
	}
	return fmt.Sprintf("%.4g", v)
}

func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.2f", perSecond)
	}
	return goal.Count(int64(perSecond + 0.5))
}

func quantileName(share float64) string {
	return fmt.Sprintf("p%g", float64(int(share*1e5+0.5))/1e3)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return goal.Count(int64(n)) + " " + what + "s"
}

// finite reports whether a value can be drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// cells are the blocks of a run by arm and load, each in the order of the rounds.
type cells map[cellKey][]*result.Block

type cellKey struct{ arm, load string }

func cellsOf(r *result.Run) cells {
	all := cells{}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		key := cellKey{b.Arm, b.Load}
		all[key] = append(all[key], b)
	}
	for _, blocks := range all {
		slices.SortStableFunc(blocks, func(a, b *result.Block) int { return cmp.Compare(a.Round, b.Round) })
	}
	return all
}

// of returns the blocks to look at: those that are judged, or all if none is.
func (c cells) of(arm, load string) (blocks []*result.Block, marked bool) {
	all := c[cellKey{arm, load}]
	for _, b := range all {
		if b.Judged() {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return all, len(all) > 0
	}
	return blocks, false
}

// marked reports whether no block of an arm at a load is judged, or half of them have a figure
// of which more than a tenth may be send lag.
func (c cells) marked(arm, load, figure string) bool {
	blocks, marked := c.of(arm, load)
	late := 0
	for _, b := range blocks {
		if b.IsLate(figure) {
			late++
		}
	}
	return marked || 2*late > len(blocks)
}

func (c cells) spread(arm, load, figure string) spread {
	blocks, _ := c.of(arm, load)
	return spreadOf(blocks, figure)
}

// errors is the mean share of the calls without an answer in the blocks to look at: a
// median would not know of a few blocks in which many were refused. NaN without blocks.
func (c cells) errors(arm, load string) float64 {
	blocks, _ := c.of(arm, load)
	sum := 0.0
	for _, b := range blocks {
		if b.Silent {
			sum++
			continue
		}
		sum += b.Figures["errors"]
	}
	return sum / float64(len(blocks))
}

// besideErrors adds to what a figure of answered calls is told of how many had none, where
// that is more than the figure can spare: without it who refuses looks fast.
func besideErrors(text, figure string, errors float64) string {
	if f, _ := result.Known(figure); f.Answers() && errors > f.Spare() {
		return text + ", " + percent(errors) + " errors"
	}
	return text
}

func (c cells) round(arm, load string, round int) *result.Block {
	for _, b := range c[cellKey{arm, load}] {
		if b.Round == round {
			return b
		}
	}
	return nil
}

func (c cells) rounds() (most int) {
	for _, blocks := range c {
		for _, b := range blocks {
			most = max(most, b.Round)
		}
	}
	return most
}
