package rank

import (
	"math"
	"time"
)

const (
	// loadFor is the time over which the means are taken: a value that is this old counts
	// 1/e.
	loadFor = time.Second
	// loadFolds is the step in which the means fade.
	loadFolds = loadFor / 100
)

// load is how many slots an account or a level has, ghosts included, and how many it
// gives back.
//
// All means fade alike, so that the difference of two of them is that of the others.
// Concurrency: belongs to the rank's lock.
type load struct {
	held  int     // slots, now
	slots float64 // mean of held
	rate  float64 // slots that are given back in a second

	ended  int           // slots given back since folded
	unheld time.Duration // what is to be subtracted from held times the time since folded
	folded time.Duration // when held was last added to the means
}

// change notes that n slots more are in use from now on.
func (l *load) change(n int, now time.Duration) {
	l.pass(now)
	l.add(n, now)
}

// add is change for a caller that has called pass.
func (l *load) add(n int, now time.Duration) {
	l.held += n
	l.unheld += time.Duration(n) * (now - l.folded)
}

// pass lets time go by.
func (l *load) pass(now time.Duration) {
	if now-l.folded >= loadFolds {
		l.fold(now)
	}
}

// fold adds the slots in use since the last fold to the means.
func (l *load) fold(now time.Duration) {
	passed := now - l.folded
	held := time.Duration(l.held)*passed - l.unheld
	old := math.Exp(-float64(passed) / float64(loadFor))
	l.slots = l.slots*old + float64(held)/float64(passed)*(1-old)
	l.rate = l.rate*old + float64(l.ended)/passed.Seconds()*(1-old)
	l.ended, l.unheld, l.folded = 0, 0, now
}
