package rank

import (
	"cmp"
	"slices"
	"time"
)

// LaneOptions describe one class of calls beside the default one.
type LaneOptions struct {
	Name string // for people
	// Priority orders lanes: no call waits in favor of one of a lower priority.
	Priority int `key:"priority" default:"0" range:"-100..100" help:"calls of a higher one go first; those in no lane have 0"`
	// Reserve is how many slots, of all together, only calls of this lane may
	// take, so that they are answered while all others are in use. A reserved
	// slot is not a certain one: which slot is free changes from call to call.
	// However few endpoints are up, one slot is left to all.
	Reserve int `key:"reserve" default:"0" range:"0..100000000" help:"slots of all endpoints together that only this lane may use"`
}

// level is the state that lanes of one priority have in common.
type level struct {
	index    int
	priority int
	waiting  int     // accounts that wait
	weights  float64 // of the waiting accounts
	// clock is the virtual time of generalized processor sharing: the slot time, in
	// nanoseconds, of an imaginary account of weight 1 that always waits and always gets
	// its share. An account that begins to wait is set to it at least: it has no claim
	// to time in which it wanted nothing. The clock counts time that calls have had, and
	// so it never goes back.
	// Source: Parekh and Gallager, IEEE/ACM Transactions on Networking 1993.
	clock float64
	// ahead is the slot time that accounts have been charged in advance, on the same
	// scale.
	ahead float64
	usage usage // of slots, by its calls
	asked asked
}

// due is the charge of an account of weight 1 that has had exactly its share.
func (l *level) due() float64 { return l.clock + l.ahead }

// enter notes that a call of an account begins to wait.
func (l *level) enter(a *Account) {
	s := &a.shares[l.index]
	if s.waiting++; s.waiting == 1 {
		l.waiting++
		l.weights += a.terms.Weight
		s.had = max(s.had, l.clock)
	}
}

// addSlots notes that calls of an account have n slots more. Every call comes here twice,
// so the rare work is elsewhere.
func (l *level) addSlots(a *Account, n int, now time.Duration) {
	own := &a.shares[l.index].usage
	if now-min(own.folded, l.usage.folded) >= usageFolds {
		l.usage.pass(now)
		own.pass(now)
	}
	l.usage.add(n, now)
	own.add(n, now)
}

// ended notes that a call of an account has given its slot back.
func (l *level) ended(a *Account, now time.Duration) {
	l.addSlots(a, -1, now)
	l.usage.ended++
	a.shares[l.index].usage.ended++
}

// exit notes that a call of an account no longer waits.
func (l *level) exit(a *Account) {
	s := &a.shares[l.index]
	if s.waiting--; s.waiting > 0 {
		return
	}
	l.weights -= a.terms.Weight
	if l.waiting--; l.waiting == 0 {
		l.weights = 0 // no sum of rounding errors
	}
}

// lane is one class of calls.
//
// Concurrency: belongs to the rank's lock; name, index and reserve never change.
type lane struct {
	*level
	name    string
	index   int
	reserve int
	running int
	waiting int
}

// streamLane is the name of the lane in which long calls wait while the long calls that
// run have all slots that they may have (R8).
const streamLane = "streams"

// newLanes makes the lanes: the default one, those of the options, and the lane of long
// calls.
func newLanes(options []LaneOptions) []*lane {
	all := slices.Concat([]LaneOptions{{Name: "default"}}, options, []LaneOptions{{Name: streamLane}})
	levels := map[int]*level{}
	lanes := make([]*lane, len(all))
	for i, o := range all {
		if levels[o.Priority] == nil {
			levels[o.Priority] = &level{index: len(levels), priority: o.Priority}
		}
		lanes[i] = &lane{level: levels[o.Priority], name: o.Name, index: i, reserve: o.Reserve}
	}
	return lanes
}

// byPriority returns the lanes in the order in which they are served.
func byPriority(lanes []*lane) []*lane {
	ordered := slices.Clone(lanes)
	slices.SortStableFunc(ordered, func(a, b *lane) int { return cmp.Compare(b.priority, a.priority) })
	return ordered
}

// levelsOf returns the levels of lanes, in the order of their indexes.
func levelsOf(lanes []*lane) (levels []*level) {
	for _, l := range lanes {
		if l.level.index == len(levels) {
			levels = append(levels, l.level)
		}
	}
	return levels
}

// reserves returns the sum of all reserves.
func reserves(lanes []*lane) (slots int) {
	for _, l := range lanes {
		slots += l.reserve
	}
	return slots
}

// laneOf returns the lane of a call that asks for a slot now. Long calls of the default
// lane wait in a lane of their own, or they would be in the way of calls that may start;
// and so do calls of which nothing is known yet.
func (r *Rank) laneOf(t *Ticket) *lane {
	last := len(r.lanes) - 1
	if r.waitsWithLong(t) {
		return r.lanes[last]
	}
	return r.lanes[min(int(t.Request.Lane), last-1)]
}

// mayStart reports whether a call of the lane may have one of the free slots: it may
// not take the reserve of other lanes, and long calls may have only a part of all slots.
func (r *Rank) mayStart(l *lane) bool {
	if l.index == len(r.lanes)-1 && !r.streams.room(r.capacity) {
		return false
	}
	return r.reserved == 0 || r.slotsFree > r.withheld(l)
}

// withheld counts the slots that are kept for other lanes. One slot is always left to
// all, or lanes without a reserve would starve when most endpoints are down.
func (r *Rank) withheld(l *lane) (slots int) {
	left := r.capacity - 1
	for _, other := range r.ordered {
		reserve := min(other.reserve, max(left, 0))
		left -= reserve
		if other != l {
			slots += max(reserve-other.running, 0)
		}
	}
	return slots
}

// countWait counts why a call waits although a slot is free where it may run.
func (r *Rank) countWait(t *Ticket) {
	switch l := t.lane; {
	case !r.slotFor(t.flow.lane.queue):
		// No slot is free.
	case l.index == len(r.lanes)-1 && !r.streams.room(r.capacity):
		r.counts.decided[waitedForStreams]++
	case r.yields(t, t.flow.lane.queue, t.joined):
		r.counts.decided[waitedForOthers]++
		t.flow.lane.yield(t.flow)
		r.wakeAt(t.joined + lookEvery)
	default:
		r.counts.decided[waitedForReserve]++
	}
}
