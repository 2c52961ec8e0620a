package traffic

import (
	"iter"
	"time"
)

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

// Replay makes the record of calls that nobody has made, such as those of a simulation:
// it is like that of a Load that was sent without lag.
//
// Concurrency: none.
type Replay struct {
	plan  Plan
	tally *tally
}

// NewReplay returns the record of no calls.
func NewReplay(p Plan) *Replay { return &Replay{plan: p, tally: newTally(p)} }

// End records that a call has ended, so long after it was due.
func (r *Replay) End(a Arrival, took time.Duration, answer Answer) {
	r.tally.end(&ended{Arrival: a, begun: a.Due, ended: a.Due + took, answer: &answer})
}

// Record returns what has become of the calls.
func (r *Replay) Record() (*Record, error) {
	record, err := total(r.plan, []*tally{r.tally})
	if err == nil {
		record.Counted = r.plan.Duration()
	}
	return record, err
}
