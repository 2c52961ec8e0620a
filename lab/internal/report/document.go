// Package report says what the lab has shown: in one HTML file that needs no network and
// no JavaScript, and with the same words and tables on a terminal. It measures nothing.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
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
