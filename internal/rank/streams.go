package rank

import "time"

// longAfter is the age from which on a call is a long one (R8).
const longAfter = 10 * time.Second

// long reports whether calls of the method usually run for long.
func (m *Method) long() bool {
	return m.name != "" && time.Duration(m.median.Load()) >= longAfter
}

// streams counts the calls that are long: those older than longAfter and those
// of methods whose calls usually are.
//
// Calls are counted by the second in which they began, so that growing old
// costs a call nothing.
type streams struct {
	limit  int // 0: all slots but one, at least half
	second int // up to which the counts are right
	old    int // calls older than longAfter
	early  int // younger ones that count as long already
	began  [window]struct{ calls, early int }
}

// window is more than the seconds in longAfter, so that no two seconds that are
// counted apart share a place.
const window = 16

const agedSeconds = int(longAfter / time.Second)

func secondOf(at time.Duration) int { return int(at / time.Second) }

// begin counts a call that begins.
func (s *streams) begin(long bool, now time.Duration) {
	s.age(now)
	place := &s.began[secondOf(now)%window]
	place.calls++
	if long {
		place.early++
		s.early++
	}
}

// end counts a call out.
func (s *streams) end(long bool, began, now time.Duration) {
	s.age(now)
	second := secondOf(began)
	if second <= s.second-agedSeconds {
		s.old--
		return
	}
	place := &s.began[second%window]
	place.calls--
	if long {
		place.early--
		s.early--
	}
}

// age notes which calls have become old.
func (s *streams) age(now time.Duration) {
	for target := secondOf(now); s.second < target; {
		if target-s.second > 2*window {
			s.second = target - 2*window // nothing is left to be moved in between
		}
		s.second++
		if s.second < agedSeconds {
			continue
		}
		place := &s.began[(s.second-agedSeconds)%window]
		s.old += place.calls
		s.early -= place.early
		*place = struct{ calls, early int }{}
	}
}

// room reports whether another long call may begin, with so many slots in all.
func (s *streams) room(slots int) bool {
	limit := s.limit
	if limit == 0 {
		limit = max(slots-1, 1)
	}
	return s.old+s.early < limit
}
