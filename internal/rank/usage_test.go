package rank

import (
	"math"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A usage is the mean of what is held, by the time for which it is held, however
// that falls between two folds.
func TestLoadIsAMeanByTime(t *testing.T) {
	var l usage
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
	testkit.Want(t, math.Abs(l.mean-3.25) <= 0.1 && math.Abs(l.rate-125) <= 5,
		"%.2f slots and %.1f calls in a second, want 3.25 and 125", l.mean, l.rate)
	// A ghost is known of late: it counts from when it began.
	l = usage{folded: now}
	l.change(1, now-usageFor)
	l.pass(now + usageFolds)
	if held := l.mean * float64(usageFor); math.Abs(held/float64(usageFor+usageFolds)-1) > 0.05 {
		t.Errorf("%v of slot time, want %v", time.Duration(held), usageFor+usageFolds)
	}
}
