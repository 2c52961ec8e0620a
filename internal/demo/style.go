package demo

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Style decides whether text is colored. The zero value is plain.
type Style struct{ colored bool }

// StyleFor colors only what a person reads: w is a terminal and NO_COLOR is
// not set.
func StyleFor(w io.Writer) Style {
	file, ok := w.(*os.File)
	return Style{colored: ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(file.Fd()))}
}

// Command marks what can be typed.
func (s Style) Command(text string) string { return s.wrap("\x1b[36m", text) }

// Title marks the first line of a block.
func (s Style) Title(text string) string { return s.wrap("\x1b[1m", text) }

func (s Style) bar(text string) string { return s.wrap("\x1b[32m", text) }

func (s Style) wrap(code, text string) string {
	if !s.colored {
		return text
	}
	return code + text + "\x1b[0m"
}
