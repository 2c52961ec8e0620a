package sink

import (
	"bytes"
	"io"
)

// Whole is a writer of whole lines to one that may fail within a line, as a full disk
// does: the next line begins on a line of its own.
//
// Shape: To is set, and Cut where what it has does not end with a line.
// Errors: those of To; n counts lines that are there in full.
type Whole struct {
	To  io.Writer
	Cut bool
}

// Write implements io.Writer, for lines with their end.
func (w *Whole) Write(lines []byte) (n int, err error) {
	if w.Cut {
		if _, err := w.To.Write(newline()); err != nil {
			return 0, err
		}
		w.Cut = false
	}
	if n, err = w.To.Write(lines); err == nil {
		return n, nil
	}
	whole := bytes.LastIndexByte(lines[:n], '\n') + 1
	w.Cut = whole < n
	return whole, err
}

func newline() []byte { return []byte{'\n'} }
