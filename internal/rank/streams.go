package rank

import "time"

// longAfter is the age from which on a call is long (R8).
const longAfter = 10 * time.Second

// long reports whether calls of the method usually run for long, or may: a method with
// streams counts as long until enough of its calls have ended sooner.
func (m *Method) long() bool {
	return m.uniform && (m.goesOn && m.samples.Load() < enough || time.Duration(m.median.Load()) >= longAfter)
}

// untried reports whether it is not known yet whether calls of the method run for long.
// Until one of them has ended the method may have all slots but one: otherwise eight
// streams that come at once would have every slot before it is known what they are.
func (m *Method) untried() bool { return m.uniform && !m.brief }

// fills reports whether an untried method has all slots that it may have: all but one,
// or all if long calls may have them.
func (r *Rank) fills(m *Method) bool {
	return m.untried() && m.running >= max(r.capacity-1, r.streams.limit, 1)
}

// waitsWithLong reports whether a call waits with the long ones: because it is long, or
// because its method is untried and has all slots that it may have.
func (r *Rank) waitsWithLong(t *Ticket) bool {
	return t.Request.Lane == 0 && (t.method.long() || r.fills(t.method))
}

// ran learns the run of a call that has ended by itself. After the first run of an
// untried method, its waiting calls move back among the others.
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

// moveTried moves the calls of a method from the lane of long calls to their own lanes.
//
// Cost: O(calls in the lane), once for each method.
func (r *Rank) moveTried(q *queue, from *lane, m *Method) {
	var moved []*Ticket
	l := &q.lanes[from.index]
	for _, h := range []*flowHeap{&l.modest, &l.greedy} {
		for _, f := range h.flows {
			for t := f.list.first; t != nil; t = t.next {
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

// relane moves a waiting call to the lane in which it belongs now.
func (r *Rank) relane(t *Ticket) {
	q := t.flow.lane.queue
	r.unqueue(t)
	t.long = t.method.long()
	t.lane = r.laneOf(t)
	q.join(t, t.position)
	t.flow.list.sortIn(t)
	t.flow.lane.moved(t.flow)
}

// GoesOn says that the answer of a call goes on after its first message: it is a
// stream, and counts as a long call unless the calls of its method are known to be
// short.
func (r *Rank) GoesOn(l Lease, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.active() || l.ticket.long {
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
			r.exempt(t, e)
			r.refresh(e)
			if r.waiting.Load() > 0 {
				r.poke()
			}
		}
	}
}

// LongCalls returns how many running calls count as long (R8).
func (r *Rank) LongCalls(now time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams.age(now)
	return r.streams.old + r.streams.early
}

// streams counts the long calls: calls older than longAfter, and younger ones of long or
// untried methods.
//
// Calls are counted by the second in which they began, so that no work is due for a
// call when it becomes old.
type streams struct {
	limit  int // 0: all slots but one, at least half
	second int // up to this second the counts are right
	old    int // calls older than longAfter
	early  int // younger calls that count as long already
	began  [window]struct{ calls, early int }
}

// window is more than the seconds in longAfter, so that two seconds that are counted
// apart never share an index.
const window = 16

const agedSeconds = int(longAfter / time.Second)

func secondOf(at time.Duration) int { return int(at / time.Second) }

// begin counts a call that begins.
func (s *streams) begin(long bool, now time.Duration) {
	s.age(now)
	counts := &s.began[secondOf(now)%window]
	counts.calls++
	if long {
		counts.early++
		s.early++
	}
}

// recognize notes that a running call counts as long from now on.
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
	counts := &s.began[second%window]
	counts.calls--
	if long {
		counts.early--
		s.early--
	}
}

// age counts calls as old that have become so by now.
func (s *streams) age(now time.Duration) {
	for target := secondOf(now); s.second < target; {
		if target-s.second > 2*window {
			s.second = target - 2*window // the seconds between have no calls
		}
		s.second++
		if s.second < agedSeconds {
			continue
		}
		counts := &s.began[(s.second-agedSeconds)%window]
		s.old += counts.calls
		s.early -= counts.early
		*counts = struct{ calls, early int }{}
	}
}

// room reports whether another long call may begin. slots counts all slots.
func (s *streams) room(slots int) bool {
	limit := s.limit
	if limit == 0 {
		limit = max(slots-1, 1)
	}
	return s.old+s.early < limit
}
