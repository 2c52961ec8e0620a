// Package report writes what a run of the lab has shown: one HTML file that needs no
// network and no JavaScript, and tables for a terminal. It draws with package plot,
// and measures nothing.
package report

import (
	"encoding/base64"
	"fmt"
	"html"
	"strings"

	"github.com/cabrank/cabrank/internal/lab/plot"
)

// Page is a report: first what was found, in words, then what shows it.
type Page struct {
	Title   string
	Summary []string // sentences; the first one is what decides
	Parts   []Part
}

// Part is one section of a page. Everything but its heading may be empty; what
// there is comes in the order of the fields.
type Part struct {
	Heading string
	Text    []string // paragraphs
	Charts  []plot.Chart
	Tables  []Table
}

// HTML returns the page as one file. The same page gives the same bytes. Its size is
// that of its words, and about 6 KB for each chart of 200 points.
func (p Page) HTML() []byte {
	var w writer
	w.put(`<!doctype html>`)
	w.put(`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`)
	w.put(`<link rel="icon" href="data:,">`) // else a browser asks its server for one
	w.put(`<title>%s</title><style>%s</style></head><body><main>`, html.EscapeString(p.Title), style)
	w.put(`<h1>%s</h1>`, html.EscapeString(p.Title))
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
		w.put(`<p>%s</p>`, html.EscapeString(text))
	}
}

func (w *writer) part(p Part) {
	w.put(`<section><h2>%s</h2>`, html.EscapeString(p.Heading))
	w.paragraphs(p.Text)
	for _, c := range p.Charts {
		w.chart(c)
	}
	for _, t := range p.Tables {
		w.table(t)
	}
	w.put(`</section>`)
}

// chart puts the picture in as an image: its styles and names stay its own.
func (w *writer) chart(c plot.Chart) {
	data := base64.StdEncoding.EncodeToString(c.SVG())
	w.put(`<figure><img width="720" height="400" alt="%s" src="data:image/svg+xml;base64,%s"></figure>`,
		html.EscapeString(c.Title+". "+c.Words()), data)
}

// table writes a table that scrolls by itself where the screen is narrow.
func (w *writer) table(t Table) {
	w.put(`<div class="table"><table>`)
	if t.Title != "" {
		w.put(`<caption>%s</caption>`, html.EscapeString(t.Title))
	}
	w.put(`<thead><tr>`)
	for _, c := range t.Columns {
		w.put(`<th scope="col"%s>%s</th>`, align(c), html.EscapeString(c.Name))
	}
	w.put(`</tr></thead><tbody>`)
	for _, row := range t.Rows {
		w.put(`<tr>`)
		for i, cell := range row {
			w.put(`<td%s>%s</td>`, align(t.Columns[i]), html.EscapeString(cell))
		}
		w.put(`</tr>`)
	}
	w.put(`</tbody></table></div>`)
}

func align(c Column) string {
	if c.Number {
		return ` class="number"`
	}
	return ""
}

// style is for light and dark surroundings; text has a contrast of at least 4.5 to 1
// in both (WCAG 2.2).
const style = `
:root{color-scheme:light dark;--ink:#1f2328;--quiet:#59636e;--edge:#d1d9e0;--shade:#f6f8fa;--page:#fff;--mark:#0060b0}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--quiet:#9da7b1;--edge:#3d444d;--shade:#161b22;--page:#0d1117;--mark:#6cb6ff}}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 -apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif}
main{max-width:46rem;margin:0 auto;padding:2rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}
h2{font-size:1.2rem;margin:2.5rem 0 .5rem}
p{margin:.5rem 0;overflow-wrap:anywhere}
.summary{background:var(--shade);border-left:4px solid var(--mark);padding:.5rem 1rem;border-radius:0 6px 6px 0}
.summary p:first-child{font-weight:600}
figure{margin:1rem 0}
img{max-width:100%;height:auto;display:block}
.table{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--quiet);padding-bottom:.25rem}
th,td{padding:.25rem .75rem;border-bottom:1px solid var(--edge);text-align:left;vertical-align:top}
th{color:var(--quiet);font-weight:600;white-space:nowrap}
.number{text-align:right}
`
