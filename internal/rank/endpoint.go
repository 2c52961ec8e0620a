package rank

import "time"

// The pause of a slot after a refusal (R1).
const (
	// minPause is about twice the time by which a Ruby worker's thread is free
	// later than its answer says; a shorter one would only be refused again.
	minPause = time.Millisecond
	// maxPause bounds how long a worker that has recovered can look busy.
	maxPause = 250 * time.Millisecond
	// maxRefusals is where minPause doubled has reached maxPause; counting
	// further would only overflow.
	maxRefusals = 8
)

// Endpoint is one place where calls can be sent, with a fixed number of slots.
//
// Life: Add makes it, not ready; SetReady opens and closes it, any number of
// times; Remove ends it. A worker that is restarted in its place keeps its
// Endpoint.
// Concurrency: Name and Index never change and may be read from anywhere; the
// rest belongs to the rank's lock.
type Endpoint struct {
	// What every lease looks at fills one line of the processor's cache; what
	// anybody may read is on the next one.
	slots    int
	ready    bool
	suspect  bool // SetSuspect's last word
	removed  bool
	inFlight int    // leases not yet released
	paused   int    // slots without a lease that Tick will free
	refusals int    // refusals in a row, at most maxRefusals
	turn     uint64 // number of the last lease here; the smallest is least recent
	freeAt   int    // position in Rank.free, -1 if no slot is free
	_        [8]byte

	name  string
	index int
	_     [40]byte // an object of whole lines begins with one
}

// Name returns the name given to Add.
func (e *Endpoint) Name() string { return e.name }

// Index returns a small number that is this endpoint's alone: endpoints count
// from 0 in the order of Add, and a removed one's number is not given again.
func (e *Endpoint) Index() int { return e.index }

// busy returns how many slots cannot take a call. A paused slot counts: its
// worker has said that it is busy.
func (e *Endpoint) busy() int { return e.inFlight + e.paused }

// open reports whether a call may be sent here now.
func (e *Endpoint) open() bool { return e.ready && !e.suspect && e.busy() < e.slots }

// refused notes one more refusal in a row and returns how long the slot pauses
// for it.
func (e *Endpoint) refused() time.Duration {
	pause := min(minPause<<e.refusals, maxPause)
	e.refusals = min(e.refusals+1, maxRefusals)
	return pause
}
