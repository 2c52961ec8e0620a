package rank

import "time"

// flow is the calls of one account that wait in one lane of one queue.
//
// Concurrency: belongs to the rank's lock.
type flow struct {
	account *Account
	lane    *laneQueue
	line    line
	waiting int

	at     int           // position in one of the heaps of its lane, -1 if none of its calls waits
	modest bool          // in which
	since  time.Duration // when its next call came
}

// laneQueue is the calls of one lane that wait in one queue: accounts that use
// their share at most in the order in which their calls came, and behind them
// the others, by the slot time that they have had.
type laneQueue struct {
	queue   *queue
	lane    *lane
	waiting int
	weights float64 // of the accounts that wait
	modest  flowHeap
	greedy  flowHeap
	longest *flow // with about the most calls; nil if nobody waits
}

// flowOf returns the account's place in the lane.
func (l *laneQueue) flowOf(a *Account) *flow {
	for _, f := range a.flows {
		if f.lane == l {
			return f
		}
	}
	f := &flow{account: a, lane: l, at: -1}
	a.flows = append(a.flows, f)
	return f
}

// begin brings in a flow whose first call has come to wait.
func (l *laneQueue) begin(f *flow) {
	l.weights += f.account.terms.Weight
	l.lane.weights += f.account.terms.Weight
	had := &f.account.had[l.lane.level.index]
	*had = max(*had, l.lane.clock)
	f.modest, f.since = true, f.line.first.Request.Arrived
	l.modest.push(f)
}

// end takes out a flow of which no call waits any more.
func (l *laneQueue) end(f *flow) {
	l.heapOf(f).remove(f)
	l.weights -= f.account.terms.Weight
	l.lane.weights -= f.account.terms.Weight
	if len(l.modest.flows)+len(l.greedy.flows) == 0 {
		l.weights = 0 // no sum of rounding errors
	}
	if l.lane.waiting == 0 {
		l.lane.weights = 0
	}
}

// moved puts a flow right whose account or next call has changed.
func (l *laneQueue) moved(f *flow) {
	f.since = f.line.first.Request.Arrived
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

// next returns the flow that is served next, with so many slots in all. At
// least one call waits.
func (l *laneQueue) next(slots int, now time.Duration) *flow {
	if len(l.modest.flows)+len(l.greedy.flows) == 1 {
		if len(l.modest.flows) == 1 {
			return l.modest.flows[0]
		}
		return l.greedy.flows[0]
	}
	for len(l.greedy.flows) > 0 {
		f := l.greedy.flows[0]
		if !f.account.modest(l.lane, l.weights, slots, now) {
			break
		}
		l.change(f)
	}
	for len(l.modest.flows) > 0 {
		f := l.modest.flows[0]
		if f.account.modest(l.lane, l.weights, slots, now) {
			return f
		}
		l.change(f)
	}
	return l.greedy.flows[0]
}

// change moves a flow to the other heap.
func (l *laneQueue) change(f *flow) {
	l.heapOf(f).remove(f)
	f.modest = !f.modest
	l.heapOf(f).push(f)
}

// flowHeap has the flow that is served next on top: a binary heap. All flows of
// one are modest, or none.
type flowHeap struct{ flows []*flow }

// before orders two flows of one level.
func (f *flow) before(g *flow) bool {
	switch level := f.lane.lane.level.index; {
	case f.modest != g.modest:
		return f.modest
	case f.modest:
		return f.since < g.since
	default:
		return f.account.had[level] < g.account.had[level]
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
