//go:build !linux

package service

import "time"

// nap returns nil: timers have to do.
func nap() func(time.Duration) { return nil }
