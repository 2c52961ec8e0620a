package handover

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the clock that service managers compare with, which Go does not
// show; 0 where there is none.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
