package testkit

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// Want fails a test in which something does not hold, and says what is so instead.
func Want(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Need is a Want without which the test cannot go on.
func Need(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Equal fails a test in which what the text names is not what is wanted.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot  %s\nwant %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// EqualList is Equal for lists, of which one without elements is like none.
func EqualList[S ~[]E, E comparable](t testing.TB, got, want S, format string, args ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// Is fails a test in which what the text names has not ended by this error.
func Is(t testing.TB, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", fmt.Sprintf(format, args...), err, want)
	}
}

// shown is a value as a message has it: of texts one sees where they begin and end.
func shown(value any) string {
	switch value.(type) {
	case string, []string:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%+v", value)
}
