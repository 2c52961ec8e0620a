package service

import (
	"syscall"
	"time"
)

// nap returns a function that sleeps for exactly so long, but for the 50 µs that
// Linux takes the liberty of. It holds a thread meanwhile.
func nap() func(time.Duration) {
	return func(d time.Duration) {
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil) // an interrupted nap is a short one
	}
}
