package rank

import "time"

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
