package load

import "time"

// schedule is a queue of the moments at which calls are due. The zero value is
// empty.
type schedule struct {
	at   []time.Duration
	head int
}

func (s *schedule) add(at ...time.Duration) { s.at = append(s.at, at...) }

// next takes the earliest.
func (s *schedule) next() (at time.Duration, ok bool) {
	if s.head == len(s.at) {
		s.at, s.head = s.at[:0], 0
		return 0, false
	}
	at = s.at[s.head]
	s.head++
	return at, true
}

// left are those that nobody has taken.
func (s *schedule) left() []time.Duration { return s.at[s.head:] }
