package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is rows of text under names.
//
// Shape: each row has a cell for each column.
type Table struct {
	Title   string // may be empty
	Columns []Column
	Rows    [][]string
}

// Column is the head of one.
type Column struct {
	Name   string
	Number bool // stands to the right
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// WriteTo writes the table for a terminal: columns as wide as their longest cell,
// two spaces between, no space at line ends.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	widths := t.widths()
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(t.Title + "\n")
	}
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	for _, row := range append([][]string{names}, t.Rows...) {
		b.WriteString(t.line(row, widths) + "\n")
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Name)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *Table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		width := widths[i]
		if !t.Columns[i].Number {
			width = -width
		}
		fmt.Fprintf(&b, "%*s", width, cell)
	}
	return strings.TrimRight(b.String(), " ")
}
