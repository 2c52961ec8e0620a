package goal

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

const (
	// sureHeld runs that held make it sure that a rate holds, and sureMissed runs that
	// missed make it sure that it does not. With one run in ten spoilt by something
	// else, three of the first four misses come by chance in 4 of 1,000 rates.
	sureHeld   = 2
	sureMissed = 3
	// tries is after how many misses a rate without a held run is taken to fail while
	// the search goes on. A generator has as many.
	tries = 2
)

type level struct {
	rate                  float64
	held, missed, limited int // runs
}

// state is what a level means for the search.
type state int

const (
	open   state = iota // another run at this rate has to say
	holds               // the thresholds hold
	fails               // they do not
	limits              // the generator was the limit
)

// state takes the runs together. A level has at most 6 runs: after one that held, two
// that missed and two of a limited generator the next one decides, whatever it is.
func (l *level) state() state {
	switch {
	case l.held >= sureHeld:
		return holds
	case l.missed >= sureMissed:
		return fails
	case l.limited > tries:
		return limits
	case l.missed == tries && l.held == 0:
		return fails
	case l.limited == tries && l.held == 0:
		return limits
	case l.held == 1 && l.missed < tries:
		return holds
	default:
		return open
	}
}

// sure reports whether the state of a level needs no other run.
func (l *level) sure() bool {
	return l.held >= sureHeld || l.missed >= sureMissed || l.state() == limits
}

// ladder is what is known of all rates that were tried, in their order.
type ladder []*level

func (all *ladder) at(rate float64) *level {
	i, found := slices.BinarySearchFunc(*all, rate, func(l *level, rate float64) int { return cmp.Compare(l.rate, rate) })
	if !found {
		*all = slices.Insert(*all, i, &level{rate: rate})
	}
	return (*all)[i]
}

// bracket returns the lowest rate at which the thresholds do not hold or the generator
// is the limit, and the highest below it at which they hold. Each may be nil.
func (all ladder) bracket() (low, high *level) {
	for _, l := range all {
		switch l.state() {
		case holds:
			low = l
		case fails, limits:
			return low, l
		case open:
		}
	}
	return low, nil
}

// next returns the rate of the next run, or false when nothing is left to find out.
// The order: finish what is open, grow, narrow down, and make sure of both ends, the
// gentle one first.
func (all ladder) next(first float64) (rate float64, more bool) {
	for _, l := range all {
		if l.state() == open {
			return l.rate, true
		}
	}
	low, high := all.bracket()
	switch {
	case low == nil && high == nil:
		return first, true
	case high == nil && low.rate < mostRate:
		return min(2*low.rate, mostRate), true
	case low != nil && high != nil && high.rate > low.rate*(1+precision):
		return between(low.rate, high.rate), true
	case low != nil && !low.sure():
		return low.rate, true
	case high != nil && !high.sure():
		return high.rate, true
	}
	return 0, false
}

// between returns a rate in the middle by ratio, with three digits if they fit.
func between(low, high float64) float64 {
	middle := math.Sqrt(low * high)
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', 3, 64), 64); err == nil && rounded > low && rounded < high {
		return rounded
	}
	return middle
}
