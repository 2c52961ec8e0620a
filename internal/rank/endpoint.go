package rank

import (
	"time"
)

// The pause of a slot after a refusal (R1).
const (
	// minPause is about twice the time from an answer until its thread is free; after a
	// shorter pause the next call would be refused as well.
	minPause = time.Millisecond
	// maxPause bounds how long a worker that has recovered can look busy.
	maxPause = 250 * time.Millisecond
	// maxRefusals is where minPause doubled has reached maxPause; counting
	// further would only overflow.
	maxRefusals = 8
)

// EndpointOptions say what an endpoint can take.
type EndpointOptions struct {
	// Slots is how many calls it may have in flight, at least 1.
	Slots int
	// Least and Most make the number of slots follow the run times that are
	// measured, from Slots on: for workers that take any number of calls at a
	// time. 1 <= Least <= Slots <= Most. With Most 0 it is fixed.
	Least, Most int
	// OnCancel says what happens to the slot of a call that is cancelled while it runs;
	// 0 means Hold.
	OnCancel OnCancel
	// Owner is for the caller; the rank does not use it.
	Owner any
}

// Endpoint is something that takes calls, with a number of slots.
//
// Life: Add makes it, not ready; SetReady opens and closes it, any number of
// times; Remove ends it. A worker keeps its Endpoint when it is restarted.
// Concurrency: Name, Index and Owner never change and may be read from anywhere; the
// rest belongs to the rank's lock.
type Endpoint struct {
	// The fields of every lease come first and together; those that anybody may read
	// come last, on a cache line of their own.
	slots     int // the most that the options allow
	limit     int // how many of them may be used now
	ready     bool
	suspect   bool
	removed   bool
	onCancel  OnCancel
	inFlight  int    // leases not yet released
	exempt    int    // streams in flight that are outside an adaptive limit
	paused    int    // slots without a lease that Tick will free
	ghosts    int    // paused slots for calls whose callers have gone
	doubts    int    // ghosts that were given up without a sign that they had ended
	refusals  int    // refusals in a row, at most maxRefusals
	lastLease uint64 // number of the last lease here; the smallest is least recent
	freeAt    int    // position in Rank.free, -1 if no slot is free
	usable    int    // slots that Rank.capacity counts
	free      int    // slots that Rank.slotsFree counts
	pace      pace
	adapt     *adaptive // nil if the number of slots is fixed
	queue     *queue    // calls that wait for it alone; nil without ByHash

	_     [64]byte
	name  string
	hash  uint64 // of name
	index int
	owner any
	_     [16]byte
}

// Name returns the name given to Add.
func (e *Endpoint) Name() string { return e.name }

// Owner returns what the options had.
func (e *Endpoint) Owner() any { return e.owner }

// Index returns the number of this endpoint: endpoints count from 0 in the order of
// Add, and the number of a removed one is not used again.
func (e *Endpoint) Index() int { return e.index }

// busy returns how many slots cannot take a call, paused ones included.
func (e *Endpoint) busy() int { return e.inFlight + e.paused }

// up reports whether the endpoint gets new calls at all.
func (e *Endpoint) up() bool { return e.ready && !e.suspect }

// open reports whether a call may be sent here now.
func (e *Endpoint) open() bool { return e.up() && e.busy() < e.limit }

// refuse notes one more refusal in a row and returns how long the slot pauses: the
// call comes back, and must not be refused again at once.
func (e *Endpoint) refuse() time.Duration {
	pause := min(minPause<<e.refusals, maxPause)
	e.refusals = min(e.refusals+1, maxRefusals)
	return pause
}

// Choice picks the endpoint for a call that can start. It is one of the three
// replaceable functions of the rank (R21).
//
// Shape: free holds at least one endpoint, each with a free slot, in no
// particular order; the choice returns one of them and does not change the slice.
// The endpoint that the call avoids is in it only if it is the only one.
// Concurrency: runs under the rank's lock, so it may read what Endpoint keeps
// there; it does not block and does not call the rank.
type Choice func(q *Request, free []*Endpoint) *Endpoint

// Fastest is the default choice: an endpoint that is not slow, or the fastest slow
// one; among equals the least loaded, as in LeastLoaded.
//
// Cost: O(endpoints with a free slot).
func Fastest(_ *Request, free []*Endpoint) *Endpoint {
	best := free[0]
	for _, e := range free[1:] {
		if faster(e, best) {
			best = e
		}
	}
	return best
}

// LeastLoaded is the choice that ignores the pace: the endpoint with the lowest
// fraction of its slots in use; among equals the one whose last call began longest
// ago, or that was added first.
//
// Cost: O(endpoints with a free slot).
func LeastLoaded(_ *Request, free []*Endpoint) *Endpoint {
	best := free[0]
	for _, e := range free[1:] {
		if lessLoaded(e, best) {
			best = e
		}
	}
	return best
}

// faster reports whether a call should rather go to a than to b.
func faster(a, b *Endpoint) bool {
	switch {
	case a.pace.slow != b.pace.slow:
		return !a.pace.slow
	case a.pace.slow && a.pace.mean != b.pace.mean:
		return a.pace.mean < b.pace.mean
	case (a.doubts > 0) != (b.doubts > 0):
		return a.doubts == 0
	}
	return lessLoaded(a, b)
}

// lessLoaded compares busy/limit of a and b without dividing.
func lessLoaded(a, b *Endpoint) bool {
	left, right := a.busy()*b.limit, b.busy()*a.limit
	if left != right {
		return left < right
	}
	if a.lastLease != b.lastLease {
		return a.lastLease < b.lastLease
	}
	return a.index < b.index // neither has had a call
}
