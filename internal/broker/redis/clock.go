package redis

import "time"

const (
	// mostWide is how long a question for the time may take, whose answer is then known
	// half as well.
	mostWide = 100 * time.Millisecond
	// mostOld is how old an answer may be.
	mostOld = time.Minute
)

// clock is the clock of a Redis: what it may not do any more when it comes to it, however
// long that takes, is told by that.
type clock struct {
	ms int64     // since 1970
	at time.Time // of the clock here
}

// set notes what was answered to a question; 0: nothing was.
func (c *clock) set(ms int64, asked, answered time.Time) {
	if wide := answered.Sub(asked); ms > 0 && wide <= mostWide {
		*c = clock{ms, asked.Add(wide / 2)}
	}
}

// of returns when it is, there, that it is t here; 0 if that is not known.
func (c clock) of(t time.Time) int64 {
	if c.ms == 0 || time.Since(c.at) > mostOld {
		return 0
	}
	return c.ms + t.Sub(c.at).Milliseconds()
}
