package rank

import (
	"math"
	"time"
)

const (
	// usageFor is the time over which the means are taken: a value that is this old counts
	// 1/e.
	usageFor = time.Second
	// usageFolds is the step in which the means fade.
	usageFolds = usageFor / 100
)

// usage is how many slots an account or a level has, ghosts included, and how many it
// gives back.
//
// All means fade alike, so that the difference of two of them is that of the others.
// Concurrency: belongs to the rank's lock.
type usage struct {
	current int     // slots, now
	mean    float64 // mean of held
	rate    float64 // slots that are given back in a second

	ended      int           // slots given back since folded
	correction time.Duration // what is to be subtracted from held times the time since folded
	folded     time.Duration // when held was last added to the means
}

// change notes that n slots more are in use from now on.
func (l *usage) change(n int, now time.Duration) {
	l.pass(now)
	l.add(n, now)
}

// add is change for a caller that has called pass.
func (l *usage) add(n int, now time.Duration) {
	l.current += n
	l.correction += time.Duration(n) * (now - l.folded)
}

// pass lets time go by.
func (l *usage) pass(now time.Duration) {
	if now-l.folded >= usageFolds {
		l.fold(now)
	}
}

// fold adds the slots in use since the last fold to the means.
func (l *usage) fold(now time.Duration) {
	passed := now - l.folded
	held := time.Duration(l.current)*passed - l.correction
	old := math.Exp(-float64(passed) / float64(usageFor))
	l.mean = l.mean*old + float64(held)/float64(passed)*(1-old)
	l.rate = l.rate*old + float64(l.ended)/passed.Seconds()*(1-old)
	l.ended, l.correction, l.folded = 0, 0, now
}
