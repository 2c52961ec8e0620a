package handover

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the clock of service managers, which Go does not show; 0 on a system
// without it.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
