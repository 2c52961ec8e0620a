package worker

import "sort"

// seat is a place as the plan sees it.
type seat struct {
	number   int    // from 0
	tenure   uint64 // number of its tenure, counted over all places; 0: the place is vacant
	ready    bool   // takes calls
	retiring bool   // drains or stops for good
	lost     bool   // has no process that could become ready soon: back-off, crash loop
	looping  bool   // is in a crash loop
	stale    bool   // is to be replaced
	young    bool   // was started by the replacement under way
	doubtful bool   // runs the version of a roll that was given up
	hopeless bool   // goes at once: the roll that started it was given up, and it does not serve
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
func (p plan) next(seats []seat) steps {
	c := census(seats)
	retire := p.leavers(seats, c)
	for _, number := range retire {
		c.leave(seatOf(seats, number))
	}
	return steps{start: p.starters(seats, c), retire: retire}
}

// count is the numbers that a plan needs of all seats together.
type count struct {
	occupied int // processes, or places about to have one
	staying  int // occupied and not retiring
	fresh    int // staying and not to be replaced
	ready    int // staying and ready
	leaving  int // retiring
	unready  int // young and not ready
	proven   int // young and ready
}

func census(seats []seat) (c count) {
	for _, s := range seats {
		switch {
		case s.tenure == 0:
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

// enter counts a staying seat in (by 1) or out (by -1).
func (c *count) enter(s seat, by int) {
	if s.ready {
		c.ready += by
	}
	if s.stale || s.hopeless {
		return
	}
	c.fresh += by
	switch {
	case s.young && s.ready:
		c.proven += by
	case s.young:
		c.unready += by
	}
}

// leave notes that a staying seat begins to leave.
func (c *count) leave(s seat) {
	c.staying--
	c.leaving++
	c.enter(s, -1)
}

// leavers chooses the seats that begin to leave.
func (p plan) leavers(seats []seat, c count) []int {
	var chosen []int
	for _, s := range leavingOrder(seats) {
		if p.mayLeave(s, c) {
			chosen = append(chosen, s.number)
			c.leave(s)
		}
	}
	return chosen
}

// leavingOrder returns the staying seats in the order in which they would leave:
// seats that do not serve before those that do, seats to be replaced before surplus
// ones, and high numbers before low ones, except in a replacement, where people expect
// the first to be first.
func leavingOrder(seats []seat) []seat {
	var order []seat
	for _, s := range seats {
		if s.tenure != 0 && !s.retiring {
			order = append(order, s)
		}
	}
	rank := func(s seat) int {
		switch {
		case s.hopeless:
			return 0
		case s.stale && !s.ready:
			return 1
		case s.stale:
			return 2
		case !s.ready:
			return 3
		case s.doubtful:
			return 4
		}
		return 5
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := order[i], order[j]
		if by := rank(a) - rank(b); by != 0 {
			return by < 0
		}
		if a.stale {
			return a.number < b.number
		}
		return b.number < a.number
	})
	return order
}

// mayLeave reports whether s may begin to leave now.
func (p plan) mayLeave(s seat, c count) bool {
	switch {
	case s.hopeless:
		return true
	case c.leaving >= p.draining:
		return false
	case s.ready && c.ready-1 < p.floor():
		return false
	case s.stale && p.surge == 0:
		return c.unready == 0 && c.staying > p.wanted-p.draining
	case s.stale && s.lost && c.proven > 0:
		return true // it serves nobody, and its place is needed
	case s.stale:
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
func (p plan) starters(seats []seat, c count) []int {
	n := min(p.wanted-c.fresh, p.wanted+p.surge-c.occupied)
	var chosen []int
	for number := 0; len(chosen) < n; number++ {
		if seatOf(seats, number).tenure == 0 {
			chosen = append(chosen, number)
		}
	}
	return chosen
}

// seatOf returns the seat with a number. A place beyond seats has never been used.
func seatOf(seats []seat, number int) seat {
	if number < len(seats) {
		return seats[number]
	}
	return seat{number: number}
}

// outage reports whether all workers, at least one, are in a crash loop.
func outage(seats []seat) (looping bool) {
	for _, s := range seats {
		if s.tenure != 0 && !s.looping {
			return false
		}
		looping = looping || s.looping
	}
	return looping
}

// settled reports whether the workers are as the plan wants them.
func (p plan) settled(seats []seat) bool {
	c := census(seats)
	return c.leaving == 0 && c.staying == p.wanted && c.fresh == p.wanted && c.unready == 0
}
