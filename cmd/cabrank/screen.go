package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen is what is known of where output goes. The zero value is a file or a
// pipe, which gets plain lines of any length.
type screen struct {
	terminal bool
	inPlace  bool // lines can be written over
	colored  bool // not if NO_COLOR is set
	width    int  // columns, 0: no limit
	height   int  // lines, 0: no limit
}

func screenOf(out io.Writer) screen {
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return screen{}
	}
	s := terminal(os.Getenv("TERM"), os.Getenv("NO_COLOR"))
	if width, height, err := term.GetSize(int(file.Fd())); err == nil {
		s.width, s.height = width, height
	}
	return s
}

// terminal is a screen of which TERM tells what it can do: one that is dumb, or that
// nobody has told of, understands no escape sequence.
func terminal(kind, noColor string) screen {
	able := kind != "" && kind != "dumb"
	return screen{terminal: true, inPlace: able, colored: able && noColor == ""}
}

// color is a text attribute of ECMA-48 (SGR).
type color string

const (
	plainColor color = ""
	good       color = "\x1b[32m"
	changing   color = "\x1b[33m"
	bad        color = "\x1b[31m"
	heading    color = "\x1b[1m"
)

// paint colors a text where that is wanted.
func (s screen) paint(c color, text string) string {
	if !s.colored || c == plainColor {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// fit cuts a line to the width, since one that wraps could not be replaced.
// Escape sequences take no columns and are kept.
func (s screen) fit(line string) string {
	if s.width < 2 {
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
		if inside || columns < s.width {
			kept.WriteRune(char)
		}
	}
	return kept.String()
}
