package testkit

import (
	"testing"
	"time"
)

// Eventually waits until done returns true and fails the test after within.
//
// It is the only place of the tree that may sleep for real: a test says which
// event it waits for, never how long the event takes. The bound within only
// decides when a hang is called a failure, so it is generous (seconds).
func Eventually(t testing.TB, within time.Duration, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for pause := 200 * time.Microsecond; !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for: %s", within, what)
		}
		time.Sleep(pause)
		if pause < 20*time.Millisecond {
			pause *= 2
		}
	}
}

// Take takes the next value of a channel; the text says what there is not when none comes in
// time, with which the test ends.
func Take[T any](t testing.TB, from <-chan T, within time.Duration, format string, args ...any) (next T) {
	t.Helper()
	select {
	case next = <-from:
	case <-time.After(within):
		t.Fatalf(format, args...)
	}
	return next
}
