package rank

import (
	"slices"
	"time"
)

// flow is the waiting calls of one account in one lane of one queue.
//
// Concurrency: belongs to the rank's lock.
type flow struct {
	account *Account
	lane    *laneQueue
	list    waitList
	waiting int

	at     int           // index in one of the heaps of its lane
	modest bool          // is in the heap modest, else in greedy
	yields bool          // leaves the free slots to others, see Rank.yields
	since  time.Duration // when its next call came
}

// laneQueue is the waiting calls of one lane in one queue: first the accounts that use
// their share at most, in the order of arrival, and behind them the others, by the slot
// time that they have had.
type laneQueue struct {
	queue   *queue
	lane    *lane
	waiting int
	weights float64 // of the accounts that wait
	modest  flowHeap
	greedy  flowHeap
	longest *flow // with about the most calls; nil if no call waits
}

// find returns the account's flow, or nil if no call of it waits here.
//
// Cost: O(queues in which the account waits): the lanes and, with ByHash,
// the endpoints.
func (l *laneQueue) find(a *Account) *flow {
	for _, f := range a.flows {
		if f.lane == l {
			return f
		}
	}
	return nil
}

// waitingOf counts the account's calls that wait here.
func (l *laneQueue) waitingOf(a *Account) int {
	if f := l.find(a); f != nil {
		return f.waiting
	}
	return 0
}

// begin adds a flow for the account, whose first call t begins to wait.
func (l *laneQueue) begin(a *Account, t *Ticket) *flow {
	f := l.queue.pool.take()
	f.account, f.lane, f.modest, f.since = a, l, true, t.Request.Arrived
	a.flows = append(a.flows, f)
	l.weights += a.terms.Weight
	l.modest.push(f)
	return f
}

// end takes out a flow without waiting calls.
func (l *laneQueue) end(f *flow) {
	l.heapOf(f).remove(f)
	a := f.account
	a.flows = slices.DeleteFunc(a.flows, func(x *flow) bool { return x == f })
	l.weights -= a.terms.Weight
	if len(l.modest.flows)+len(l.greedy.flows) == 0 {
		l.weights = 0 // no sum of rounding errors
	}
	if l.longest == f {
		// Any will do: a longer one takes over when it grows.
		l.longest = l.any()
	}
	l.queue.pool.give(f)
}

// flowPool are flows that are not in use, kept so that waiting needs no new memory.
type flowPool struct{ flows []*flow }

func (s *flowPool) take() *flow {
	last := len(s.flows) - 1
	if last < 0 {
		return &flow{}
	}
	f := s.flows[last]
	s.flows = s.flows[:last]
	return f
}

func (s *flowPool) give(f *flow) {
	*f = flow{}
	s.flows = append(s.flows, f)
}

// moved restores the order after a flow's account or next call has changed.
func (l *laneQueue) moved(f *flow) {
	f.since = f.list.first.Request.Arrived
	l.heapOf(f).fix(f.at)
}

// any returns a flow that waits, or nil.
func (l *laneQueue) any() *flow {
	for _, h := range []*flowHeap{&l.greedy, &l.modest} {
		if len(h.flows) > 0 {
			return h.flows[0]
		}
	}
	return nil
}

func (l *laneQueue) heapOf(f *flow) *flowHeap {
	if f.modest {
		return &l.modest
	}
	return &l.greedy
}

// mostChanged bounds how many flows change their heap in one look: when an account
// comes or goes the shares of all change, and each flow is checked when its turn comes.
const mostChanged = 8

// next returns the flow that is served next. slots counts all of them. At least one
// call waits.
func (l *laneQueue) next(slots int, now time.Duration) *flow {
	modest := func(f *flow) bool { return f.account.modest(l.lane.level, slots, now) }
	left := mostChanged
	for ; left > 0 && len(l.greedy.flows) > 0 && modest(l.greedy.flows[0]); left-- {
		l.change(l.greedy.flows[0])
	}
	for ; left > 0 && len(l.modest.flows) > 0 && !modest(l.modest.flows[0]); left-- {
		l.change(l.modest.flows[0])
	}
	switch modest, greedy := l.modest.flows, l.greedy.flows; {
	case len(greedy) == 0, len(modest) > 0 && modest[0].before(greedy[0]):
		return modest[0]
	default:
		return greedy[0]
	}
}

// wanted reports whether a call waits without leaving the free slots to others.
func (l *laneQueue) wanted() bool {
	return len(l.modest.flows) > 0 && !l.modest.flows[0].yields || len(l.greedy.flows) > 0 && !l.greedy.flows[0].yields
}

// change moves a flow to the other heap.
func (l *laneQueue) change(f *flow) {
	l.heapOf(f).remove(f)
	f.modest = !f.modest
	l.heapOf(f).push(f)
}

// yield puts a flow behind all others of its heap for now.
func (l *laneQueue) yield(f *flow) {
	f.yields = true
	l.heapOf(f).fix(f.at)
}

// flowHeap is a binary heap with the flow that is served next on top. Its flows are all
// modest, or all greedy.
type flowHeap struct{ flows []*flow }

// before orders two flows of one level.
func (f *flow) before(g *flow) bool {
	switch level := f.lane.lane.level.index; {
	case f.yields != g.yields:
		return g.yields
	case f.modest != g.modest:
		return f.modest
	case f.modest:
		return f.since < g.since
	default:
		return f.account.shares[level].had < g.account.shares[level].had
	}
}

func (h *flowHeap) push(f *flow) {
	f.at = len(h.flows)
	h.flows = append(h.flows, f)
	h.up(f.at)
}

func (h *flowHeap) remove(f *flow) {
	last := len(h.flows) - 1
	at := f.at
	h.swap(at, last)
	h.flows[last] = nil
	h.flows = h.flows[:last]
	f.at = -1
	if at < last {
		h.fix(at)
	}
}

// fix restores the order after the flow at i has changed.
func (h *flowHeap) fix(i int) {
	h.up(i)
	h.down(i)
}

func (h *flowHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.flows[i].before(h.flows[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *flowHeap) down(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.flows); child++ {
			if h.flows[child].before(h.flows[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h *flowHeap) swap(i, j int) {
	h.flows[i], h.flows[j] = h.flows[j], h.flows[i]
	h.flows[i].at, h.flows[j].at = i, j
}
