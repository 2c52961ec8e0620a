package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// must ends a test to which an error has happened that it is not about.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check fails a test in which something does not hold, and says what is so instead.
func check(t *testing.T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// need is a check without which the test cannot go on.
func need(t *testing.T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// same fails a test in which what the text names is not what is wanted.
func same[T comparable](t *testing.T, got, want T, format string, args ...any) {
	t.Helper()
	check(t, got == want, "%s:\ngot  %v\nwant %v", fmt.Sprintf(format, args...), got, want)
}

// sameList is same for lists.
func sameList(t *testing.T, got, want []string, format string, args ...any) {
	t.Helper()
	check(t, slices.Equal(got, want), "%s:\ngot  %q\nwant %q", fmt.Sprintf(format, args...), got, want)
}

// says fails a test whose text is without a part.
func says(t *testing.T, text, part string) {
	t.Helper()
	check(t, strings.Contains(text, part), "no %q in\n%.3000s", part, text)
}
