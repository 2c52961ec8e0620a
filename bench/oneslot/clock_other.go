//go:build !linux

package oneslot

import "time"

// Now is the machine's clock: the same in every process.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }

// sleepUntil returns at a moment of Now, as exactly as the runtime can.
func sleepUntil(at time.Duration) { time.Sleep(at - Now()) }
