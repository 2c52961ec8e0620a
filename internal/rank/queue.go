package rank

// queue is the calls that wait for the same slots: those of all endpoints, or of
// one if a policy has bound them to it.
//
// Concurrency: belongs to the rank's lock.
type queue struct {
	lanes   []laneQueue // by lane index
	waiting int
}

func newQueue(lanes []*lane) *queue {
	q := &queue{lanes: make([]laneQueue, len(lanes))}
	for i, l := range lanes {
		q.lanes[i] = laneQueue{queue: q, lane: l}
	}
	return q
}

// join puts t in.
func (q *queue) join(t *Ticket, at place) {
	l := &q.lanes[t.lane.index]
	f := l.flowOf(t.account)
	t.flow = f
	f.line.join(t, at)
	t.expected = t.method.occupancy()
	t.account.queued += t.expected
	f.waiting++
	l.waiting++
	l.lane.waiting++
	q.waiting++
	t.account.waiting++
	if f.at < 0 {
		l.begin(f)
	} else if at == head {
		l.moved(f)
	}
	if l.longest == nil || f.waiting > l.longest.waiting {
		l.longest = f
	}
}

// remove takes out t, which waits in q.
func (q *queue) remove(t *Ticket) {
	f := t.flow
	l := f.lane
	f.line.remove(t)
	f.waiting--
	l.waiting--
	l.lane.waiting--
	q.waiting--
	t.account.waiting--
	t.account.queued -= t.expected
	t.flow = nil
	if f.waiting > 0 {
		l.moved(f)
		return
	}
	l.end(f)
	if l.longest == f {
		// Any will do: a longer one says so when it grows.
		l.longest = l.any()
	}
}

// victim returns a call that gives up its place for one that would join f, or
// nil: one of a lane that is served later, else one of the account that has the
// most waiting, if that has more than f would.
func (q *queue) victim(f *flow) *Ticket {
	var from *flow
	for i := range q.lanes {
		other := q.lanes[i].longest
		switch {
		case other == nil || other == f || q.lanes[i].lane.priority > f.lane.lane.priority:
		case q.lanes[i].lane.priority == f.lane.lane.priority && other.waiting <= f.waiting+1:
		case from == nil || from.comesBefore(other):
			from = other
		}
	}
	if from == nil {
		return nil
	}
	return from.line.spare()
}

// comesBefore reports whether f's calls have a better claim to their places than
// g's.
func (f *flow) comesBefore(g *flow) bool {
	if p, q := f.lane.lane.priority, g.lane.lane.priority; p != q {
		return p > q
	}
	return f.waiting < g.waiting
}
