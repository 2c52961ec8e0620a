package service

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What is waited for is looked at before the end of a phase counts, which has one cause.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began, times := newPhase(), time.Now(), 0
		third := func() (bool, error) { times++; return times == 3, nil }
		if err := await(p, time.Second, third); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(3500*time.Millisecond, func() { p.end(errStopping) })
		if repeat(p, time.Second, func(time.Time) { times++ }); times != 6 {
			t.Errorf("%d times, want 6", times)
		}
		if err := await(p, time.Second, third); !errors.Is(err, errStopping) {
			t.Errorf("at the end: %v", err)
		}
	})
}
