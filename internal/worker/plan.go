package worker

import (
	"cmp"
	"slices"
)

// place is the state of one place, for the plan.
type place struct {
	number         int    // from 0
	occupancy      uint64 // number of its occupancy, counted over all places; 0: the place is vacant
	ready          bool   // takes calls
	retiring       bool   // drains or stops for good
	lost           bool   // has no process that could become ready soon: back-off, crash loop
	looping        bool   // is in a crash loop
	outdated       bool   // is to be replaced
	isNew          bool   // was started by the replacement under way
	ofFailedUpdate bool   // runs the version of a roll that was given up
	failedUpdate   bool   // goes at once: the roll that started it was given up, and it does not serve
}

// plan is how many processes are wanted and how fast they may change. Its methods decide
// and change nothing, and read no clock.
type plan struct {
	wanted   int
	surge    int // processes above wanted at any time, draining ones included
	draining int // processes that may drain or stop at a time
	minReady int // ready workers that stay when one more begins to drain
}

// steps are the next things to do. Both lists hold numbers of places.
type steps struct {
	start  []int
	retire []int
}

// next returns the steps that are due. It is called again after every change: a step
// that must wait for something is not yet among the steps.
//
// It keeps these promises: there are at most wanted + surge processes, draining ones
// included; at most draining of them leave at a time; a ready one leaves only if
// minReady stay, and in a replacement only once its spare is ready.
func (p plan) next(places []place) steps {
	c := census(places)
	retire := p.leavers(places, c)
	for _, number := range retire {
		c.leave(placeAt(places, number))
	}
	return steps{start: p.starters(places, c), retire: retire}
}

// count is the numbers that a plan needs of all places together.
type count struct {
	occupied int // processes, or places about to have one
	staying  int // occupied and not retiring
	fresh    int // staying and not to be replaced
	ready    int // staying and ready
	leaving  int // retiring
	unready  int // young and not ready
	proven   int // young and ready
}

func census(places []place) (c count) {
	for _, s := range places {
		switch {
		case s.occupancy == 0:
			continue
		case s.retiring:
			c.leaving++
		default:
			c.staying++
			c.enter(s, 1)
		}
		c.occupied++
	}
	return c
}

// enter counts a staying place in (by 1) or out (by -1).
func (c *count) enter(s place, by int) {
	if s.ready {
		c.ready += by
	}
	if s.outdated || s.failedUpdate {
		return
	}
	c.fresh += by
	switch {
	case s.isNew && s.ready:
		c.proven += by
	case s.isNew:
		c.unready += by
	}
}

// leave notes that a staying place begins to leave.
func (c *count) leave(s place) {
	c.staying--
	c.leaving++
	c.enter(s, -1)
}

// leavers chooses the places that begin to leave.
func (p plan) leavers(places []place, c count) []int {
	var chosen []int
	for _, s := range leavingOrder(places) {
		if p.mayLeave(s, c) {
			chosen = append(chosen, s.number)
			c.leave(s)
		}
	}
	return chosen
}

// leavingOrder returns the staying places in the order in which they would leave:
// places that do not serve before those that do, places to be replaced before surplus
// ones, and high numbers before low ones, except in a replacement, where people expect
// the first to be first.
func leavingOrder(places []place) []place {
	var order []place
	for _, s := range places {
		if s.occupancy != 0 && !s.retiring {
			order = append(order, s)
		}
	}
	rank := func(s place) int {
		switch {
		case s.failedUpdate:
			return 0
		case s.outdated && !s.ready:
			return 1
		case s.outdated:
			return 2
		case !s.ready:
			return 3
		case s.ofFailedUpdate:
			return 4
		}
		return 5
	}
	slices.SortStableFunc(order, func(a, b place) int {
		by := cmp.Compare(b.number, a.number)
		if a.outdated {
			by = -by
		}
		return cmp.Or(rank(a)-rank(b), by)
	})
	return order
}

// mayLeave reports whether s may begin to leave now.
func (p plan) mayLeave(s place, c count) bool {
	switch {
	case s.failedUpdate:
		return true
	case c.leaving >= p.draining:
		return false
	case s.ready && c.ready-1 < p.floor():
		return false
	case s.outdated && p.surge == 0:
		return c.unready == 0 && c.staying > p.wanted-p.draining
	case s.outdated && s.lost && c.proven > 0:
		return true // it does not serve, and its place is needed
	case s.outdated:
		// A worker that does not serve just now, after a crash, may serve again before
		// a version that has never been ready.
		return c.staying > p.wanted && (c.unready == 0 || !s.ready && c.proven > 0)
	default:
		return c.fresh > p.wanted
	}
}

// floor is how many workers stay ready when one more begins to drain. It is never more
// than are wanted, and without a surge one has to go first: else a replacement would
// never end after a change of these numbers.
func (p plan) floor() int {
	if p.surge == 0 {
		return min(p.minReady, p.wanted-1)
	}
	return min(p.minReady, p.wanted)
}

// atOnce is how many workers, at least, a replacement replaces at the same time, from
// the start of the new ones to the end of the old ones.
func (p plan) atOnce() int {
	if p.surge == 0 {
		return min(p.draining, p.wanted-p.floor())
	}
	return min(p.draining, p.surge)
}

// starters chooses the places of new processes: the lowest vacant ones.
func (p plan) starters(places []place, c count) []int {
	n := min(p.wanted-c.fresh, p.wanted+p.surge-c.occupied)
	var chosen []int
	for number := 0; len(chosen) < n; number++ {
		if placeAt(places, number).occupancy == 0 {
			chosen = append(chosen, number)
		}
	}
	return chosen
}

// placeAt returns the place with a number. A place beyond places has never been used.
func placeAt(places []place, number int) place {
	if number < len(places) {
		return places[number]
	}
	return place{number: number}
}

// outage reports whether all workers, at least one, are in a crash loop.
func outage(places []place) (looping bool) {
	for _, s := range places {
		if s.occupancy != 0 && !s.looping {
			return false
		}
		looping = looping || s.looping
	}
	return looping
}

// settled reports whether the workers are as the plan wants them.
func (p plan) settled(places []place) bool {
	c := census(places)
	return c.leaving == 0 && c.staying == p.wanted && c.fresh == p.wanted && c.unready == 0
}
