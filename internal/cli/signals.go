package cli

import (
	"os"
	"syscall"
	"time"
)

// StopSignals are the signals that ask to stop, whatever else is going on.
func StopSignals() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
}

// echoTime is how soon after a signal that asks to stop another one is the same:
// timeout(1) signals its child and then the whole group, and a terminal's Ctrl-C
// comes again from whoever passes signals on. Nobody who is in a hurry is so fast.
const echoTime = 100 * time.Millisecond

// Echoes tells a signal to stop from the echo of the one before.
type Echoes struct {
	// Last is when one came that was none; zero: never.
	Last time.Time
}

// IsEcho reports whether a signal that comes now is the same as the one before.
func (e *Echoes) IsEcho(now time.Time) bool {
	if now.Sub(e.Last) < echoTime {
		return true
	}
	e.Last = now
	return false
}
