package rank

import (
	"math"
	"time"
)

const (
	// loadFor is over what time it is looked at who has how many slots: what is
	// older counts less and less, 1/e after as long.
	loadFor = time.Second
	// loadFolds is how finely it fades.
	loadFolds = loadFor / 100
)

// load is how many slots somebody has, ghosts included, and how many are given back.
//
// Means fade alike for all, so that the difference of two loads is that of the
// others.
// Concurrency: belongs to the rank's lock.
type load struct {
	held  int     // slots, now
	slots float64 // mean of held
	rate  float64 // slots that are given back in a second

	ended  int           // since folded
	unheld time.Duration // what is to be taken off held times the time since folded
	folded time.Duration // when what was held was last added to the means
}

// change notes that n slots more are held from now on.
func (l *load) change(n int, now time.Duration) {
	l.pass(now)
	l.add(n, now)
}

// add does so where pass was called.
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

// fold adds what was held since the last time to the means.
func (l *load) fold(now time.Duration) {
	passed := now - l.folded
	held := time.Duration(l.held)*passed - l.unheld
	old := math.Exp(-float64(passed) / float64(loadFor))
	l.slots = l.slots*old + float64(held)/float64(passed)*(1-old)
	l.rate = l.rate*old + float64(l.ended)/passed.Seconds()*(1-old)
	l.ended, l.unheld, l.folded = 0, 0, now
}
