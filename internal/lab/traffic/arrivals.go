package traffic

import (
	"iter"
	"time"
)

// Arrival is a call of an open loop as its plan has it.
type Arrival struct {
	// Number is the call's, by which its request is made.
	Number uint64
	// Due is its intended start, since the load began.
	Due time.Duration
	// Counted says that it is not of the warm-up.
	Counted bool
}

// Arrivals are all calls of an open loop in order, those of other parts, too. A closed
// loop has none: answers decide there.
func (p Plan) Arrivals() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		if !p.Open() {
			return
		}
		s := newSchedule(p)
		for a, ok := s.drawAny(); ok; a, ok = s.drawAny() {
			if !yield(Arrival{Number: a.number, Due: a.due, Counted: a.counted}) {
				return
			}
		}
	}
}
