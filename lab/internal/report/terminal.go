package report

import (
	"fmt"
	"io"
)

// Print writes the run for a terminal: what the page says, without its pictures.
func (r Run) Print(w io.Writer) error {
	return printed(w, r.Summary(), r.Verdicts(), r.Figures(), r.markTable())
}

// printed writes sentences and tables, an empty line before each of these.
func printed(w io.Writer, sentences []string, all ...Table) error {
	for _, line := range sentences {
		fmt.Fprintln(w, line)
	}
	for _, t := range tables(all...) {
		fmt.Fprintln(w)
		if _, err := t.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}
