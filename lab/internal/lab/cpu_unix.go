//go:build unix

package lab

import (
	"syscall"
	"time"
)

// usedCPU is the processor time that this process has used.
func usedCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
