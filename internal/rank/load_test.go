package rank

import (
	"math"
	"testing"
	"time"
)

// A load is the mean of what is held, by the time for which it is held, however
// that falls between two folds.
func TestLoadIsAMeanByTime(t *testing.T) {
	var l load
	const calls, run, every = 2000, 2 * time.Millisecond, 8 * time.Millisecond
	now := time.Duration(0)
	for range calls { // a quarter of the time one slot is held beside three others
		l.change(1, now)
		l.ended++
		l.change(-1, now+run)
		if now == 0 {
			l.change(3, 0)
		}
		now += every
	}
	l.pass(now)
	if math.Abs(l.slots-3.25) > 0.1 || math.Abs(l.rate-125) > 5 {
		t.Errorf("%.2f slots and %.1f calls in a second, want 3.25 and 125", l.slots, l.rate)
	}
	// A ghost is known of late: it counts from when it began.
	l = load{folded: now}
	l.change(1, now-loadFor)
	l.pass(now + loadFolds)
	if held := l.slots * float64(loadFor); math.Abs(held/float64(loadFor+loadFolds)-1) > 0.05 {
		t.Errorf("%v of slot time, want %v", time.Duration(held), loadFor+loadFolds)
	}
}
