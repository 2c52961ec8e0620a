package rank

import (
	"slices"
	"time"
)

// Add adds an endpoint. It gets calls from SetReady on. Names are for people, and
// decide with ByHash which calls it gets.
func (r *Rank) Add(name string, o EndpointOptions) *Endpoint {
	if o.Slots < 1 || o.Most != 0 && (o.Least < 1 || o.Slots < o.Least || o.Slots > o.Most) {
		broken("endpoint without slots, or beyond their bounds")
	}
	if o.OnCancel == 0 {
		o.OnCancel = Hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &Endpoint{
		name: name, hash: hashOf(name), index: r.nextIndex, freeAt: -1,
		slots: max(o.Slots, o.Most), onCancel: o.OnCancel, owner: o.Owner,
	}
	if o.Most != 0 {
		e.adapt = &adaptive{least: o.Least, start: o.Slots, most: o.Most}
	}
	e.resetSlots(0)
	if r.byHash {
		e.queue = newQueue(e, r.lanes, &r.pool)
	}
	r.nextIndex++
	r.endpoints = append(r.endpoints, e)
	return e
}

// SetReady opens or closes an endpoint. It appends to into the notices that it made,
// for the caller to deliver.
//
// A closed endpoint gets no new lease; its leases go on. An endpoint that opens
// starts afresh: its pauses end and its refusals are forgotten, for it may be
// another process by now, and an adaptive limit starts from the limits of others.
// Calling it again with the same value, or for a removed endpoint, changes nothing.
func (r *Rank) SetReady(e *Endpoint, ready bool, now time.Duration, into []Notice) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.removed || e.ready == ready {
		return into
	}
	e.ready, e.suspect = ready, false
	if ready {
		r.ready.Add(1)
		e.refusals, e.doubts = 0, 0
		e.pace = pace{}
		e.resetSlots(r.slotsToStart(e))
		r.unpause(e, now)
	} else {
		r.ready.Add(-1)
	}
	return r.upChanged(e, now, into)
}

// upChanged updates the rank after an endpoint has begun or ceased to get calls.
func (r *Rank) upChanged(e *Endpoint, now time.Duration, into []Notice) []Notice {
	r.up = slices.DeleteFunc(r.up, func(x *Endpoint) bool { return x == e })
	if e.up() {
		r.up = append(r.up, e)
	}
	r.refresh(e)
	r.handovers.begin(now) // the time that it was away does not tell how long calls take
	if r.byHash {
		r.rehome(e)
	}
	return r.serve(now, into)
}

// Remove takes an endpoint out for good. Its leases are released later like any
// others, and their slots are gone. Calls that wait for it alone move to other
// endpoints; a Tick serves them. A second Remove changes nothing.
func (r *Rank) Remove(e *Endpoint, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.removed {
		return
	}
	if e.ready {
		r.ready.Add(-1)
	}
	e.ready, e.suspect, e.removed = false, false, true
	r.unpause(e, now)
	r.up = slices.DeleteFunc(r.up, func(x *Endpoint) bool { return x == e })
	r.refresh(e)
	if r.byHash {
		r.rehome(e)
	}
	if r.waiting.Load() > 0 {
		r.poke() // a call that waited for it may have met a free slot elsewhere
	}
	r.endpoints = slices.DeleteFunc(r.endpoints, func(x *Endpoint) bool { return x == e })
}

// Snapshot is a copy of the rank's state at one instant, for people and
// metrics.
type Snapshot struct {
	// Endpoints are the endpoints that are not removed, in the order of Add.
	Endpoints []EndpointState
	// Waiting is the number of calls in the queue. Lanes are the default lane, those
	// of Options.Lanes, and the lane of long calls.
	Waiting int
	Lanes   []LaneState
	// LongCalls is how many long calls run (R8).
	LongCalls int
	// Accounts is how many accounts the rank keeps now.
	Accounts int
}

// LaneState is one lane in a Snapshot.
type LaneState struct {
	Name    string
	Waiting int
	Running int
}

// EndpointState is one endpoint in a Snapshot. Counts are slots.
type EndpointState struct {
	Name     string
	Slots    int // the most that the options allow
	Limit    int // how many of them may be used now
	InFlight int // used by calls
	Paused   int // paused until the worker has finished, ghosts included
	Ghosts   int // held for calls whose callers have gone (R5)
	Ready    bool
	Suspect  bool
	Slow     bool // others are preferred
	// Pace is the run time of its calls, compared with the usual run time of their
	// methods: 2 is twice as long. 1 if nothing is known.
	Pace float64
	// Adapts is the reason for the present value of an adaptive limit, as a metrics
	// label; "" if the number of slots is fixed.
	Adapts string
}

// Snapshot copies the state. It costs O(endpoints) under the lock.
func (r *Rank) Snapshot() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{
		Endpoints: make([]EndpointState, 0, len(r.endpoints)), Waiting: r.Waiting(),
		LongCalls: r.streams.old + r.streams.early, Accounts: len(r.accounts),
	}
	for _, l := range r.lanes {
		s.Lanes = append(s.Lanes, LaneState{Name: l.name, Waiting: l.waiting, Running: l.running})
	}
	for _, e := range r.endpoints {
		adapts := ""
		if e.adapt != nil {
			adapts = e.adapt.why.String()
		}
		s.Endpoints = append(s.Endpoints, EndpointState{
			Name: e.name, Slots: e.slots, Limit: e.limit, Adapts: adapts,
			InFlight: e.inFlight, Paused: e.paused, Ghosts: e.ghosts,
			Ready: e.ready, Suspect: e.suspect, Slow: e.pace.slow, Pace: e.pace.ratio(),
		})
	}
	return s
}

// SetSuspect says that an endpoint is silent and gets no new calls, or that it has
// answered again (R6). It appends to into the notices that it made and returns the
// result, for the caller to deliver.
//
// A suspect endpoint keeps its leases and still counts as ready. SetReady and Remove
// end the suspicion. An endpoint that is not ready does not change.
func (r *Rank) SetSuspect(e *Endpoint, suspect bool, now time.Duration, into []Notice) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.ready || e.suspect == suspect {
		return into
	}
	e.suspect = suspect
	return r.upChanged(e, now, into)
}

// InFlight returns the number of leases of the endpoint.
func (r *Rank) InFlight(e *Endpoint) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.inFlight
}
