package testkit

import "testing"

// Must ends a test to which an error has happened that it is not about.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
