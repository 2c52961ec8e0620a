package rank

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// orderState is what an order is told of a list of calls that have a second each.
func orderState(wait, gap time.Duration, l *OrderState) *OrderState {
	l.Time, l.Wait, l.Gap = time.Second, wait, gap
	return l
}

// The order of arrival is turned round when it has been too slow for a tenth of a
// call's time without a break, and after one and a half times that time it is tried
// again.
func TestNewestFirstWhileItIsTooLate(t *testing.T) {
	l := &OrderState{}
	for _, step := range []struct {
		at, wait time.Duration
		newest   bool
	}{
		{time.Second, 930 * ms, false},
		{1010 * ms, 940 * ms, false}, // too late from here on
		{1090 * ms, 940 * ms, false},
		{1095 * ms, 900 * ms, false}, // a break
		{1100 * ms, 940 * ms, false},
		{1190 * ms, 990 * ms, false},
		{1200 * ms, 990 * ms, true},
		{1900 * ms, 100 * ms, true}, // as few as that may wait while most are served at once
		{2690 * ms, 400 * ms, true},
		{2700 * ms, 520 * ms, false},
		{3000 * ms, 640 * ms, false}, // more than five eighths, but hardly more than before
		{3100 * ms, 660 * ms, true},  // a quarter more
		{4600 * ms, 640 * ms, false},
		{4700 * ms, 790 * ms, false},
		{6590 * ms, 790 * ms, false},
		{6610 * ms, 930 * ms, false}, // the trial is over: it was good enough
	} {
		testkit.Equal(t, Adaptive(orderState(step.wait, 10*ms, l), step.at), step.newest, "at %v with %v to wait", step.at, step.wait)
	}
}

// A queue that does not grow in the order of arrival stays in it, however long it
// is: callers wait for their answers before they send more.
func TestFullLoopIsNoOverload(t *testing.T) {
	l := &OrderState{}
	for now := 0 * ms; now < time.Minute; now += ms {
		testkit.Need(t, !Adaptive(orderState(930*ms, 10*ms, l), now), "newest first at %v", now)
	}
}

// When there are twice as many slots as before the order of arrival is tried at once.
func TestFirstComeAgainWithMoreSlots(t *testing.T) {
	l := &OrderState{}
	Adaptive(orderState(time.Second, 10*ms, l), time.Second)
	testkit.Need(t, Adaptive(orderState(time.Second, 10*ms, l), 1100*ms) && Adaptive(orderState(500*ms, 6*ms, l), 1200*ms),
		"not newest first")
	testkit.Want(t, !Adaptive(orderState(400*ms, 5*ms, l), 1210*ms), "still newest first")
}

// Calls that may take any time are served as they came.
func TestNoDeadlineNoOverload(t *testing.T) {
	l := &OrderState{Wait: time.Hour, Gap: time.Second}
	for now := time.Second; now < time.Hour; now += time.Second {
		testkit.Need(t, !Adaptive(l, now), "newest first")
	}
}

// R1: a call that was put back goes first even then.
func TestPutBackCallsGoFirstUnderOverload(t *testing.T) {
	var l waitList
	tickets := make([]Ticket, 3)
	for i := range tickets {
		l.join(&tickets[i], tail)
	}
	testkit.Need(t, l.next(newestFirst, 0) == &tickets[2], "no overload")
	var back Ticket
	l.join(&back, head)
	testkit.Want(t, l.next(newestFirst, 0) == &back && l.toDrop() != &back, "the call that was put back lost its place")
}
