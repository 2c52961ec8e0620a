package schema

import (
	"strings"
	"unicode"
)

// maxWordBytes bounds a text of others in an error.
const maxWordBytes = 200

// OneLine makes a text of others fit to be part of one line: it has no control
// characters and at most 200 bytes.
func OneLine(text string) string {
	text = strings.TrimSpace(strings.Map(printable, strings.ToValidUTF8(text, "�")))
	if len(text) > maxWordBytes {
		return strings.ToValidUTF8(text[:maxWordBytes], "") + "…"
	}
	return text
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// Plain returns the text of an error of the protobuf module without its prefix, which
// differs from build to build.
func Plain(err error) string {
	return strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
}
