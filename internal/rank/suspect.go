package rank

import "time"

// SetSuspect says that an endpoint is silent and gets no new calls, or that it
// has spoken again (R6). It appends to into the grants that it made and returns
// the result, for the caller to deliver.
//
// A suspect endpoint keeps its leases and still counts as ready: whether calls
// can be served at all is another question than where the next one goes.
// SetReady and Remove end the suspicion. For an endpoint that is not ready
// nothing changes.
func (r *Rank) SetSuspect(e *Endpoint, suspect bool, now time.Duration, into []Grant) []Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.ready || e.suspect == suspect {
		return into
	}
	e.suspect = suspect
	return r.turned(e, now, into)
}

// InFlight returns how many leases of the endpoint are not released yet.
func (r *Rank) InFlight(e *Endpoint) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.inFlight
}
