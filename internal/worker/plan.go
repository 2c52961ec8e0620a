package worker

import "sort"

// seat is a place as the plan sees it.
type seat struct {
	number   int    // from 0
	tenure   uint64 // which occupation of any place this is, counted over all; 0: the place is vacant
	ready    bool   // takes calls
	retiring bool   // drains or stops, never to come back
	lost     bool   // has no process that could become ready soon: back-off, crash loop
	looping  bool   // is in a crash loop
	stale    bool   // is to be replaced
	young    bool   // was started by the replacement under way
	doubtful bool   // runs a version whose roll was given up
	hopeless bool   // is to go at once: the roll that started it was given up, and it does not serve
}

// plan says how many processes there should be and how fast they may change. It
// decides and does nothing, and reads no clock.
type plan struct {
	wanted   int
	surge    int // processes above wanted at any time, draining ones included
	draining int // that may drain or stop at a time
	minReady int // ready workers that are left when one more begins to drain
}

// steps are what is to be done next. Both lists hold numbers of places.
type steps struct {
	start  []int
	retire []int
}

// next returns the steps that are due. It is asked anew after every change: what
// must wait for something is simply not yet among the steps.
//
// What is promised is promised here: processes are at most wanted + surge,
// draining ones included; at most draining of them leave at a time; a ready one
// leaves only if minReady stay, and in a replacement only once its spare is
// ready.
func (p plan) next(seats []seat) steps {
	c := census(seats)
	retire := p.leavers(seats, c)
	for _, number := range retire {
		c.leave(seatOf(seats, number))
	}
	return steps{start: p.starters(seats, c), retire: retire}
}

// count is what a plan has to know of all seats together.
type count struct {
	occupied int // processes, or places about to have one
	staying  int // of them not retiring
	fresh    int // of these not to be replaced
	ready    int // of staying
	leaving  int // retiring
	unready  int // of the young ones
	proven   int // young ones that are ready
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

// enter counts a seat that stays in (1) or out (-1).
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

// leave notes that a seat that stayed begins to leave.
func (c *count) leave(s seat) {
	c.staying--
	c.leaving++
	c.enter(s, -1)
}

// leavers chooses who begins to leave.
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

// leavingOrder returns the seats that stay, in the order in which they would
// leave: what does not serve before what does, what is to be replaced before
// what is too many, high places before low ones but in a replacement, where
// people expect the first to be the first.
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
		// Also who does not serve just now, after a crash, may serve before a
		// version does that has never been ready.
		return c.staying > p.wanted && (c.unready == 0 || !s.ready && c.proven > 0)
	default:
		return c.fresh > p.wanted
	}
}

// floor is how many stay ready when one more begins to drain. More workers than
// are wanted are never waited for, and without a surge one has to go first: else
// a replacement would never end after a change of these numbers.
func (p plan) floor() int {
	if p.surge == 0 {
		return min(p.minReady, p.wanted-1)
	}
	return min(p.minReady, p.wanted)
}

// atOnce is how many workers a replacement gets through together at least, from
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

// seatOf returns the seat with a number, which is its index if it has ever been
// taken.
func seatOf(seats []seat, number int) seat {
	if number < len(seats) {
		return seats[number]
	}
	return seat{number: number}
}

// outage reports whether there are workers, all of them in a crash loop.
func outage(seats []seat) (looping bool) {
	for _, s := range seats {
		if s.tenure != 0 && !s.looping {
			return false
		}
		looping = looping || s.looping
	}
	return looping
}

// settled reports whether nothing is left to do or to wait for.
func (p plan) settled(seats []seat) bool {
	c := census(seats)
	return c.leaving == 0 && c.staying == p.wanted && c.fresh == p.wanted && c.unready == 0
}
