package method

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cabrank/cabrank/internal/spelling"
)

const (
	// maxListed bounds how many names an error lists.
	maxListed = 8
	// maxWordBytes bounds a name or a text of others in an error.
	maxWordBytes = 200
)

// among ends an error about a wrong name with those that are right: nearest first, or
// in their order if there was no name.
func among(what, wrong string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	sorted := slices.Clone(known)
	if wrong != "" {
		sorted = spelling.Sorted(wrong, known)
	}
	rest := ""
	if len(sorted) > maxListed {
		rest = ", and " + strconv.Itoa(len(sorted)-maxListed) + " more"
		sorted = sorted[:maxListed]
	}
	for i, one := range sorted {
		sorted[i] = shorten(one)
	}
	return "; " + what + ": " + strings.Join(sorted, ", ") + rest
}

// shorten makes a text of others fit to be part of one line: it has no control
// characters and at most 200 bytes.
func shorten(text string) string {
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
