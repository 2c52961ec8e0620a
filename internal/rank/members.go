package rank

import (
	"slices"
	"time"
)

// Add brings in an endpoint that may have slots calls in flight, at least 1. It
// gets no call before SetReady says so. Names are for people; the rank does not
// compare them.
func (r *Rank) Add(name string, slots int) *Endpoint {
	if slots < 1 {
		broken("endpoint without slots")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &Endpoint{name: name, index: r.nextIndex, slots: slots, freeAt: -1}
	r.nextIndex++
	r.endpoints = append(r.endpoints, e)
	return e
}

// SetReady opens or closes an endpoint. It appends to into the grants that it
// made, for the caller to deliver.
//
// A closed endpoint gets no new lease; leases that run go on. One that opens
// starts afresh: its pauses end and its refusals are forgotten, for it may be
// another process by now. Saying the same again, or of a removed endpoint,
// changes nothing.
func (r *Rank) SetReady(e *Endpoint, ready bool, now time.Duration, into []Grant) []Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.removed || e.ready == ready {
		return into
	}
	e.ready, e.suspect = ready, false
	if ready {
		r.ready.Add(1)
		e.refusals = 0
		r.unpause(e)
	} else {
		r.ready.Add(-1)
	}
	r.refresh(e)
	return r.serve(now, into)
}

// Remove takes an endpoint out for good. Its running leases are released later
// like any others, and their slots are gone. A second Remove changes nothing.
func (r *Rank) Remove(e *Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.removed {
		return
	}
	if e.ready {
		r.ready.Add(-1)
	}
	e.ready, e.suspect, e.removed = false, false, true
	r.unpause(e)
	r.refresh(e)
	r.endpoints = slices.DeleteFunc(r.endpoints, func(x *Endpoint) bool { return x == e })
}

// Snapshot is a copy of the rank's state at one instant, for people and
// metrics.
type Snapshot struct {
	// Endpoints are those not removed, in the order of Add.
	Endpoints []EndpointState
	// Waiting is the number of calls in the queue.
	Waiting int
}

// EndpointState is one endpoint in a Snapshot. Counts are slots; InFlight and
// Paused together are at most Slots.
type EndpointState struct {
	Name     string
	Slots    int
	InFlight int
	Paused   int
	Ready    bool
	Suspect  bool
}

// Snapshot copies the state. It costs O(endpoints) under the lock.
func (r *Rank) Snapshot() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Endpoints: make([]EndpointState, 0, len(r.endpoints)), Waiting: r.Waiting()}
	for _, e := range r.endpoints {
		s.Endpoints = append(s.Endpoints, EndpointState{
			Name:     e.name,
			Slots:    e.slots,
			InFlight: e.inFlight,
			Paused:   e.paused,
			Ready:    e.ready,
			Suspect:  e.suspect,
		})
	}
	return s
}
