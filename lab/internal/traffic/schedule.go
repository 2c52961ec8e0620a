package traffic

import (
	"iter"
	"math/rand/v2"
	"time"
)

// grid is what intended starts are rounded up to: to wake up for every call would
// cost more than the call does.
const grid = 100 * time.Microsecond

// Arrival is a call of an open loop that is to come.
type Arrival struct {
	// Number is that of the call, as in Call.
	Number uint64
	// Due is when it is to start, since the start of the load: a multiple of grid.
	Due time.Duration
	// Counted is false in the warm-up.
	Counted bool
}

// schedule draws the arrivals of an open loop one after the other, in order. It is
// a function of the plan alone.
//
// A call is due where the area below the rate reaches the next of a row of numbers:
// 0, 1, 2 and so on, or sums of exponential gaps of mean 1 for a Poisson process. So
// any profile has its exact number of calls, and a ramp is no row of steps.
type schedule struct {
	plan   Plan
	rest   Profile // pieces to come, of the warm-up or of the counted part
	gone   float64 // area of those behind
	begin  time.Duration
	next   float64    // the area at which the next call is due
	random *rand.Rand // nil for constant arrivals
	number uint64
	warm   bool
}

// The streams of random numbers of the two parts of a plan: the counted part has
// the same arrivals whatever the warm-up.
const (
	warmStream uint64 = iota + 1
	countedStream
)

func newSchedule(p Plan) *schedule {
	s := &schedule{plan: p, warm: p.Warmup > 0}
	if s.warm {
		s.enter(p.Rate.after(p.Warmup)[:1], warmStream)
	} else {
		s.enter(p.Rate, countedStream)
	}
	return s
}

// enter begins one of the two parts.
func (s *schedule) enter(p Profile, stream uint64) {
	s.rest, s.gone, s.next = p, 0, 0
	if s.plan.Poisson {
		s.random = rand.New(rand.NewPCG(s.plan.Seed, stream))
		s.next = s.random.ExpFloat64()
	}
}

// draw returns the next arrival of this part of the plan.
func (s *schedule) draw() (Arrival, bool) {
	for {
		a, ok := s.drawAny()
		if !ok || a.Number%uint64(s.plan.parts()) == uint64(s.plan.Part) {
			return a, ok
		}
	}
}

// drawAny returns the next arrival of all parts.
func (s *schedule) drawAny() (Arrival, bool) {
	// A hair less than the sum, so that rounding adds no call at the very end.
	const hair = 1e-6
	for {
		for len(s.rest) > 0 {
			piece := s.rest[0]
			if within := s.next - s.gone; within < piece.area()-hair {
				return s.take(piece.reach(max(within, 0))), true
			}
			s.gone += piece.area()
			s.begin += piece.Length
			s.rest = s.rest[1:]
		}
		if !s.warm {
			return Arrival{}, false
		}
		s.warm = false
		s.enter(s.plan.Rate, countedStream)
	}
}

// take makes the arrival at a moment of the present piece, and moves on.
func (s *schedule) take(at time.Duration) Arrival {
	a := Arrival{Number: s.number, Due: (s.begin + at + grid - 1).Truncate(grid), Counted: !s.warm}
	s.number++
	if s.random == nil {
		s.next++
	} else {
		s.next += s.random.ExpFloat64()
	}
	return a
}

// Arrivals yields the calls of an open loop in the order in which they are due: those
// that a Load makes, of its part.
func (p Plan) Arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		if !p.Open() {
			return
		}
		s := newSchedule(p)
		for {
			a, ok := s.draw()
			if !ok || !yield(a) {
				return
			}
		}
	}
}
