package rank

import "time"

// The pause of a slot after a refusal (R1).
const (
	// minPause is about twice the time by which a thread is free later than its answer
	// says; a shorter one would only be refused again.
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
	// OnCancel is what becomes of the slot of a call that is cancelled while it
	// runs; 0 means Hold.
	OnCancel OnCancel
	// Owner is the caller's own; the rank does not look at it.
	Owner any
}

// Endpoint is one place where calls can be sent, with a number of slots.
//
// Life: Add makes it, not ready; SetReady opens and closes it, any number of
// times; Remove ends it. A worker that is restarted in its place keeps its
// Endpoint.
// Concurrency: Name, Index and Owner never change and may be read from anywhere; the
// rest belongs to the rank's lock.
type Endpoint struct {
	// What every lease looks at stands together; what anybody may read is at the
	// end, on a line of the processor's cache of its own.
	slots    int // the most that the options allow
	limit    int // how many of them may be used now
	ready    bool
	suspect  bool
	removed  bool
	onCancel OnCancel
	inFlight int    // leases not yet released
	aside    int    // of them, streams that are outside an adaptive limit
	paused   int    // slots without a lease that Tick will free
	ghosts   int    // of paused, for calls whose callers have gone
	doubts   int    // ghosts that were given up without a sign that they had ended
	refusals int    // refusals in a row, at most maxRefusals
	turn     uint64 // number of the last lease here; the smallest is least recent
	freeAt   int    // position in Rank.free, -1 if no slot is free
	usable   int    // what of limit is in Rank.capacity
	free     int    // what of it is in Rank.slotsFree
	pace     pace
	adapt    *adaptive // nil if the number of slots is fixed
	latency  latency   // for PeakEWMA
	queue    *queue    // calls that a policy has bound to it; nil with LateBinding

	_     [64]byte
	name  string
	index int
	owner any
	_     [24]byte
}

// Name returns the name given to Add.
func (e *Endpoint) Name() string { return e.name }

// Owner returns what the options had.
func (e *Endpoint) Owner() any { return e.owner }

// Index returns a small number that is this endpoint's alone: endpoints count
// from 0 in the order of Add, and a removed one's number is not given again.
func (e *Endpoint) Index() int { return e.index }

// busy returns how many slots cannot take a call. A paused slot counts: its
// worker has said that it is busy.
func (e *Endpoint) busy() int { return e.inFlight + e.paused }

// up reports whether the endpoint gets new calls at all.
func (e *Endpoint) up() bool { return e.ready && !e.suspect }

// open reports whether a call may be sent here now.
func (e *Endpoint) open() bool { return e.up() && e.busy() < e.limit }

// refuse notes one more refusal in a row and returns how long the slot pauses for
// it: the call comes back, and must not be refused again at once.
func (e *Endpoint) refuse() time.Duration {
	pause := min(minPause<<e.refusals, maxPause)
	e.refusals = min(e.refusals+1, maxRefusals)
	return pause
}
