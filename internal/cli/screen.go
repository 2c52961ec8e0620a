package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is what is known of where output goes. The zero value is a file or a
// pipe, which gets plain lines of any length.
type Screen struct {
	Terminal bool
	InPlace  bool // lines can be written over
	Colored  bool // not if NO_COLOR is set
	Width    int  // columns, 0: no limit
	Height   int  // lines, 0: no limit
}

// ScreenOf returns what is known of out.
func ScreenOf(out io.Writer) Screen {
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return Screen{}
	}
	s := terminal(os.Getenv("TERM"), os.Getenv("NO_COLOR"))
	if width, height, err := term.GetSize(int(file.Fd())); err == nil {
		s.Width, s.Height = width, height
	}
	return s
}

// terminal is a screen of which TERM tells what it can do: one that is dumb, or that
// nobody has told of, understands no escape sequence.
func terminal(kind, noColor string) Screen {
	able := kind != "" && kind != "dumb"
	return Screen{Terminal: true, InPlace: able, Colored: able && noColor == ""}
}

// Color is a text attribute of ECMA-48 (SGR).
type Color string

// The colors of what people look at.
const (
	Plain    Color = ""
	Good     Color = "\x1b[32m"
	Changing Color = "\x1b[33m"
	Bad      Color = "\x1b[31m"
	Heading  Color = "\x1b[1m"
)

// Paint colors a text where that is wanted.
func (s Screen) Paint(c Color, text string) string {
	if !s.Colored || c == Plain {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// Fit cuts a line to the width, since one that wraps could not be replaced.
// Escape sequences take no columns and are kept.
func (s Screen) Fit(line string) string {
	if s.Width < 2 {
		return line
	}
	var kept strings.Builder
	columns, escape := 0, false
	for _, char := range line {
		inside := escape || char == '\x1b'
		escape = inside && char != 'm'
		if !inside {
			columns++
		}
		if inside || columns < s.Width {
			kept.WriteRune(char)
		}
	}
	return kept.String()
}
