//go:build !linux

package work

import "time"

// burn keeps a core busy for so long: a thread cannot be asked here for the CPU that it has used.
func burn(d time.Duration) {
	began := time.Now()
	for time.Since(began) < d {
		continue
	}
}
