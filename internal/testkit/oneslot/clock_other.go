//go:build !linux

package oneslot

import "time"

// Now is the machine's clock: the same in every process.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
