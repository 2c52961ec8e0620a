package worker

import "time"

const (
	backOffFirst = 100 * time.Millisecond
	backOffMax   = 30 * time.Second
	// backOffSpread keeps workers that died together from restarting together.
	backOffSpread = 0.2
	// steadyAfter is how long a worker must have been ready for its exits before to be
	// forgotten.
	steadyAfter = 60 * time.Second
	// loopExits exits within loopWindow are a crash loop.
	loopExits  = 5
	loopWindow = 60 * time.Second
)

// backOff counts the exits of one worker and says how long to wait before the
// next start. It reads no clock. The zero value is ready to use.
type backOff struct {
	inARow  int                      // exits since the last steady process
	exits   [loopExits]time.Duration // when the last exits were, a ring
	next    int                      // where in exits the next one goes
	looping bool
}

// exited records an exit at now of a process that had been ready for served (0
// if it never was), and returns the wait before the next start: 100 ms doubling
// to 30 s, times 0.8 to 1.2 as chance goes from 0 to 1.
//
// A process that never became ready does not count as steady however long it ran:
// otherwise a boot timeout of a minute would be retried without any back-off.
func (b *backOff) exited(now, served time.Duration, chance float64) time.Duration {
	if served >= steadyAfter {
		*b = backOff{}
	}
	b.inARow++
	b.exits[b.next] = now
	b.next = (b.next + 1) % loopExits
	// The entry after the newest is the oldest of the last five. Longer waits make exits
	// rarer than five a minute, so only a steady process ends the loop.
	if b.inARow >= loopExits && now-b.exits[b.next] <= loopWindow {
		b.looping = true
	}
	return time.Duration(float64(b.base()) * (1 - backOffSpread + 2*backOffSpread*chance))
}

func (b *backOff) base() time.Duration {
	const doublings = 9 // more are beyond backOffMax
	return min(backOffFirst<<min(b.inARow-1, doublings), backOffMax)
}
