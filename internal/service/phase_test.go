package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// What is waited for is looked at before anything ends the wait, and the end has its cause.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, broken := newPhase(), errors.New("broken")
		began, looks := time.Now(), 0
		err := await(p, time.Second, func() (bool, error) {
			looks++
			return looks == 3, nil
		})
		if err != nil || looks != 3 || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %d looks and %v", err, looks, time.Since(began))
		}
		if err := await(p, time.Second, func() (bool, error) { return false, broken }); err != broken { //nolint:errorlint // as it is
			t.Errorf("a look that fails: %v", err)
		}
		time.AfterFunc(1500*time.Millisecond, func() { p.end(errStopping) })
		if err := await(p, time.Second, func() (bool, error) { return false, nil }); !errors.Is(err, errStopping) || !p.isOver() {
			t.Errorf("at the end of the phase: %v", err)
		}
		p.end(broken)
		if err := await(p, time.Second, func() (bool, error) { return true, nil }); err != nil {
			t.Errorf("what is there already: %v", err)
		}
		if cause := context.Cause(p); !errors.Is(cause, errStopping) {
			t.Errorf("a phase ends once, by the first: %v", cause)
		}
	})
}

func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		times := 0
		repeat(ctx, time.Second, func(time.Time) { times++ })
		if times != 3 {
			t.Errorf("%d times", times)
		}
	})
}
