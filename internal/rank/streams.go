package rank

import "time"

// longAfter is the age from which on a call is a long one (R8).
const longAfter = 10 * time.Second

// long reports whether calls of the method run for long as a rule, or may: those
// whose answers go on do until enough of them have ended sooner.
func (m *Method) long() bool {
	return m.trial && (m.goesOn && m.samples.Load() < enough || time.Duration(m.median.Load()) >= longAfter)
}

// untried reports whether nothing tells yet whether calls of the method run for
// long. Until one of them has ended it may have all slots but one: eight streams
// that come at once would else have every slot before it is known what they are.
func (m *Method) untried() bool { return m.trial && !m.brief }

// fills reports whether as many calls of the method run as may before one of them has
// ended: on all slots but one, or on all if long calls may have those.
func (r *Rank) fills(m *Method) bool {
	return m.untried() && m.running >= max(r.capacity-1, r.streams.limit, 1)
}

// waitsWithLong reports whether a call waits with the long ones: because it is one, or
// because nobody knows and its method has all that it may have.
func (r *Rank) waitsWithLong(t *Ticket) bool {
	return t.Request.Lane == 0 && (t.method.long() || r.fills(t.method))
}

// ran learns the run of a call that has ended by itself. If that is the first of its
// method those that wait for it need wait for nobody but their turn.
func (r *Rank) ran(m *Method, run, now time.Duration) {
	tried := !m.untried()
	m.observe(run, now)
	last := r.lanes[len(r.lanes)-1]
	if tried || m.untried() || last.waiting == 0 {
		return
	}
	for q := range r.queues {
		r.moveTried(q, last, m)
	}
}

// moveTried moves the calls of a method from the lane of long calls to where others
// wait.
//
// Cost: O(calls in the lane), once for each method.
func (r *Rank) moveTried(q *queue, from *lane, m *Method) {
	var moved []*Ticket
	l := &q.lanes[from.index]
	for _, h := range []*flowHeap{&l.modest, &l.greedy} {
		for _, f := range h.flows {
			for t := f.line.first; t != nil; t = t.next {
				if t.method == m {
					moved = append(moved, t)
				}
			}
		}
	}
	for _, t := range moved {
		r.relane(t)
	}
}

// relane has a call wait in the lane that is its own by now.
func (r *Rank) relane(t *Ticket) {
	q := t.flow.lane.queue
	r.unqueue(t)
	t.long = t.method.long()
	t.lane = r.laneOf(t)
	q.join(t, t.place)
	t.flow.line.settle(t)
	t.flow.lane.moved(t.flow)
}

// GoesOn says that the answer of a call goes on behind its first message: it is a
// stream, and counts as a long call unless such calls are known to be short.
func (r *Rank) GoesOn(l Lease, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.held() || l.ticket.long {
		return
	}
	t := l.ticket
	t.method.goesOn = true
	if t.long = t.method.long(); t.long {
		if !t.early {
			t.early = true
			r.streams.recognize(t.at, now)
		}
		if e := t.endpoint; e.adapt != nil {
			r.setAside(t, e)
			r.refresh(e)
			if r.waiting.Load() > 0 {
				r.poke()
			}
		}
	}
}

// LongCalls returns how many calls run that count as long (R8).
func (r *Rank) LongCalls(now time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams.age(now)
	return r.streams.old + r.streams.early
}

// streams counts the calls that are long: those older than longAfter, those of
// methods whose calls usually are, and those of which nobody knows yet.
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

// recognize notes that a call that runs counts as long from now on.
func (s *streams) recognize(began, now time.Duration) {
	s.age(now)
	if second := secondOf(began); second > s.second-agedSeconds {
		s.began[second%window].early++
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
