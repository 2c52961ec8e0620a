package shard

import (
	"testing"
	"time"
)

// R11: who costs more than its share waits in turn, and does not when it has kept
// below for as long as it has cost too much.
func TestShare(t *testing.T) {
	const pause = 10 * time.Millisecond
	s := newShare(0)
	now := time.Duration(0)
	for i, step := range []struct {
		after, took time.Duration
		waits       bool
	}{
		{0, 0, true}, // nothing is known of it
		{shareOf * (mostOwed - leastOwed), 0, true},
		{shareOf, 0, false},
		{pause, pause / shareOf, false}, // just its share
		{pause, pause / shareOf, false},
		{shareOf * leastOwed, 0, false},
		{0, leastOwed - 1, false}, // what it may cost at once after a pause
		{0, 1, true},
		{0, time.Hour, true}, // no more than mostOwed is owed
		{shareOf * (mostOwed - leastOwed), 0, true},
		{shareOf, 0, false},
	} {
		now += step.after
		s.charge(step.took)
		if got := s.usedUp(now); got != step.waits {
			t.Errorf("step %d: it waits: %v, owes %v", i, got, s.owed)
		}
	}
}
