package work

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// burn uses so much CPU. On a busy machine, or with a quota, it takes longer.
func burn(d time.Duration) {
	if d <= 0 {
		return
	}
	runtime.LockOSThread() // the clock is that of the thread
	defer runtime.UnlockOSThread()
	until := used() + d
	for used() < until {
		continue
	}
}

// used is the CPU that this thread has used.
func used() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 1 << 62 // never seen; no call hangs for it
	}
	return time.Duration(t.Nano())
}
