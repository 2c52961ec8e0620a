package testkit

import (
	"os"
	"strings"
	"testing"
)

// Must ends a test to which an error has happened that it is not about.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ReadFile is what a file has.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return content
}

// Refused fails a test whose error is not one line that says something.
func Refused(t testing.TB, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("got  %v\nwant %s", err, says)
	}
}

// RefusedBy fails a test whose error is not exactly this line.
func RefusedBy(t testing.TB, err error, line string) {
	t.Helper()
	if err == nil || err.Error() != line {
		t.Errorf("got  %v\nwant %s", err, line)
	}
}

// Says fails a test whose text is without one of these parts.
func Says(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%.3000s", part, text)
		}
	}
}
