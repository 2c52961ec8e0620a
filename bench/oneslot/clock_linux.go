package oneslot

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the machine's monotonic clock: the same in every process.
func Now() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) //nolint:errcheck // this clock is always there
	return time.Duration(t.Nano())
}

// sleepUntil returns at a moment of Now, late by some microseconds: the
// runtime's own timers are exact to a millisecond in a process that is idle.
func sleepUntil(at time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) //nolint:errcheck // then it is 50 us later
	until := unix.NsecToTimespec(int64(at))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR { //nolint:revive // a signal has come
	}
}
