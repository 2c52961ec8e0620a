package report

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cabrank/cabrank/lab/internal/plot"
)

// Page is a report: first what was found, in words, then what shows it.
type Page struct {
	Title   string
	Lead    string   // what was asked; may be empty
	Summary []string // sentences; the first one is what decides
	Parts   []Part
}

// Part is one section of a page. Everything but its heading may be empty; what
// there is comes in the order of the fields.
type Part struct {
	Heading string
	Text    []string // paragraphs
	Charts  []plot.Chart
	Strips  []plot.Strips
	Bars    []plot.Bars
	Tables  []Table
	// Folded are tables that are shown when somebody asks for them, Files texts.
	Folded []Table
	Files  []File
}

// HTML returns the page as one file. The same page gives the same bytes. Its size is
// that of its words, and about 3 KB for each line of 100 points, for each picture is in
// it twice: for wide screens, and for narrow ones.
func (p Page) HTML() []byte {
	var w writer
	w.put(`<!doctype html>`)
	w.put(`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`)
	w.put(`<link rel="icon" href="data:,">`) // else a browser asks its server for one
	w.put(`<title>%s</title><style>%s</style></head><body><main>`, html.EscapeString(p.Title), style+plot.Style)
	w.put(`<h1>%s</h1>`, html.EscapeString(p.Title))
	if p.Lead != "" {
		w.put(`<p class="lead">%s</p>`, html.EscapeString(p.Lead))
	}
	if len(p.Summary) > 0 {
		w.put(`<section class="summary">`)
		w.paragraphs(p.Summary)
		w.put(`</section>`)
	}
	for _, part := range p.Parts {
		w.part(part)
	}
	w.put(`</main></body></html>`)
	return []byte(w.String())
}

// writer is a page on its way to HTML.
type writer struct{ strings.Builder }

// put writes a line, whose values are escaped already.
func (w *writer) put(format string, values ...any) { fmt.Fprintf(w, format+"\n", values...) }

func (w *writer) paragraphs(list []string) {
	for _, text := range list {
		w.put(`<p>%s</p>`, html.EscapeString(together(text)))
	}
}

// together keeps numbers and their units in one line.
func together(text string) string {
	return strings.NewReplacer(" %", "\u00a0%", " ms", "\u00a0ms", " µs", "\u00a0µs").Replace(text)
}

func (w *writer) part(p Part) {
	w.put(`<section><h2>%s</h2>`, html.EscapeString(p.Heading))
	w.paragraphs(p.Text)
	for _, s := range p.Strips {
		w.strips(s)
	}
	for _, c := range p.Charts {
		w.chart(c)
	}
	for _, b := range p.Bars {
		w.bars(b)
	}
	for _, t := range p.Tables {
		w.table(t)
	}
	for _, t := range p.Folded {
		w.put(`<details><summary>%s</summary>`, html.EscapeString(t.Title))
		w.table(Table{Columns: t.Columns, Rows: t.Rows})
		w.put(`</details>`)
	}
	for _, f := range p.Files {
		w.put(`<details><summary>%s</summary><pre>%s</pre></details>`, html.EscapeString(f.Name), html.EscapeString(f.Text))
	}
	w.put(`</section>`)
}

// chart puts a picture in twice, and the style shows the one that fits the screen. Names
// of lines are in the wide one, and in a legend above the narrow one.
func (w *writer) chart(c plot.Chart) {
	var keys []key
	for _, l := range c.Lines {
		if len(c.Lines) > 1 && len(l.Points) > 0 {
			keys = append(keys, key{l.Label, l.Pen, l.Broken || l.Pen == plot.Dashed})
		}
	}
	w.put(`<figure><figcaption><strong>%s</strong><br>%s</figcaption>`, html.EscapeString(c.Title), html.EscapeString(c.Y.Label))
	w.legend("narrow", keys)
	w.panels(c.Panel, c.Note)
}

func (w *writer) bars(b plot.Bars) { w.parts(b.Title, b.Parts, b.Panel, b.Note) }

func (w *writer) strips(s plot.Strips) { w.parts(s.Title, s.Parts, s.Panel, s.Note) }

// parts puts in a picture whose parts have a legend.
func (w *writer) parts(title string, parts []plot.BarPart, panel func(plot.Size) []byte, note string) {
	var keys []key
	for _, p := range parts {
		keys = append(keys, key{p.Label, p.Pen, false})
	}
	w.put(`<figure><figcaption><strong>%s</strong></figcaption>`, html.EscapeString(title))
	if len(keys) > 1 {
		w.legend("any", keys)
	}
	w.panels(panel, note)
}

// panels ends a figure.
func (w *writer) panels(panel func(plot.Size) []byte, note string) {
	w.put(`<div class="wide">%s</div><div class="narrow">%s</div>`, panel(plot.Wide), panel(plot.Narrow))
	if note != "" {
		w.put(`<p class="note">%s</p>`, html.EscapeString(note))
	}
	w.put(`</figure>`)
}

// key is one entry of a legend.
type key struct {
	label  string
	pen    plot.Pen
	broken bool
}

func (w *writer) legend(class string, keys []key) {
	if len(keys) == 0 {
		return
	}
	w.put(`<ul class="legend %s">`, class)
	for _, k := range keys {
		style := ""
		if k.broken {
			style = ` style="border-top-style:dashed"`
		}
		w.put(`<li class="%s"><i%s></i>%s</li>`, k.pen.Class(), style, html.EscapeString(k.label))
	}
	w.put(`</ul>`)
}

// table writes a table that scrolls by itself where the screen is narrow.
func (w *writer) table(t Table) {
	w.put(`<div class="table"><table>`)
	if t.Title != "" {
		w.put(`<caption>%s</caption>`, html.EscapeString(t.Title))
	}
	w.put(`<thead><tr>`)
	for _, c := range t.Columns {
		w.put(`<th scope="col"%s>%s</th>`, align(c, ""), html.EscapeString(c.Name))
	}
	w.put(`</tr></thead><tbody>`)
	for _, row := range t.Rows {
		w.put(`<tr>`)
		for i, cell := range row {
			w.put(`<td%s>%s</td>`, align(t.Columns[i], cell), html.EscapeString(cell))
		}
		w.put(`</tr>`)
	}
	w.put(`</tbody></table></div>`)
}

func align(c Column, cell string) string {
	switch {
	case c.Number:
		return ` class=n`
	case utf8.RuneCountInString(cell) > mostInLine:
		return ` class=long`
	}
	return ""
}

// style is for light and dark surroundings; text has a contrast of at least 4.5 to 1
// in both (WCAG 2.2).
const style = `
:root{color-scheme:light dark;--ink:#1f2328;--quiet:#59636e;--edge:#d1d9e0;--shade:#f6f8fa;--page:#fff;--mark:#0060b0}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--quiet:#9da7b1;--edge:#3d444d;--shade:#161b22;--page:#0d1117;--mark:#6cb6ff}}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 -apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2rem 1rem 4rem}
h1,p,figure,.summary,caption{max-width:44rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}
h2{font-size:1.2rem;margin:2.5rem 0 .5rem}
p{margin:.5rem 0;overflow-wrap:anywhere}
p.lead{color:var(--quiet);font-size:1.05rem;margin-bottom:1rem}
.summary{box-sizing:border-box;background:var(--shade);border-left:4px solid var(--mark);padding:.5rem 1rem;border-radius:0 6px 6px 0}
.summary p:first-child{font-weight:600}
figure{margin:1.5rem 0}
figcaption{color:var(--quiet);font-size:.9rem;margin-bottom:.5rem}
figcaption strong{color:var(--ink);font-size:1rem}
.note{color:var(--quiet);font-size:.85rem;margin:0}
.legend{list-style:none;margin:0 0 .5rem;padding:0;font-size:.85rem}
.legend li{display:inline-block;margin-right:1rem}
.legend i{display:inline-block;width:1.5em;margin-right:.4em;border-top:3px solid currentColor;vertical-align:.25em}
.narrow{display:none}
@media (max-width:600px){.wide{display:none}.narrow{display:block}ul.narrow{display:block}}
summary{cursor:pointer;color:var(--quiet);margin:.75rem 0 0}
pre{overflow-x:auto;background:var(--shade);padding:.75rem;border-radius:6px;font-size:.85rem;line-height:1.4}
.table{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;white-space:nowrap;color:var(--quiet);padding-bottom:.25rem}
th,td{padding:.25rem .75rem;border-bottom:1px solid var(--edge);text-align:left;vertical-align:top;white-space:nowrap}
th{color:var(--quiet);font-weight:600}
th:first-child,td:first-child{padding-left:0}
td.long{white-space:normal;min-width:16rem;overflow-wrap:anywhere}
.n{text-align:right}
`

// WriteTo writes the table for a terminal.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, t.text())
	return int64(n), err
}
