package redis

import "time"

const (
	// mostWide is how long a question for the time may take; the error is half of that.
	mostWide = 100 * time.Millisecond
	// mostOld is how old an answer may be.
	mostOld = time.Minute
)

// clock is the clock of a Redis. It turns instants into those of Redis, so that Redis does
// not do anything after its time, however late it gets to it.
type clock struct {
	ms int64     // since 1970, there
	at time.Time // the same instant here
}

// set notes the answer to a question for the time; 0 means no answer.
func (c *clock) set(ms int64, asked, answered time.Time) {
	if wide := answered.Sub(asked); ms > 0 && wide <= mostWide {
		*c = clock{ms, asked.Add(wide / 2)}
	}
}

// of returns the time there when it is t here; 0 if that is not known.
func (c clock) of(t time.Time) int64 {
	if c.ms == 0 || time.Since(c.at) > mostOld {
		return 0
	}
	return c.ms + t.Sub(c.at).Milliseconds()
}
