package rank

import "time"

// Retry asks for a slot for another attempt of a call after its last one has failed:
// like Acquire, but it is the same call. Its time in the queue goes on adding up, the
// terms of its account are not applied again, and it joins at the tail.
//
// The lease of the last attempt has been released before; the caller sets
// Request.Avoid, and Request.Until anew.
// Errors: panics like Acquire.
func (r *Rank) Retry(t *Ticket, w Waiter, now time.Duration) (Lease, Reply, Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.claim()
	if t.Request.late(now) {
		return r.refuse(DeadlineExceeded)
	}
	r.prepare(t, now)
	r.use.arrived++
	return r.begin(t, w, now)
}

// begin starts a call at once, or lets it wait at the tail, or refuses it.
func (r *Rank) begin(t *Ticket, w Waiter, now time.Duration) (Lease, Reply, Reason) {
	q := r.queueFor(t)
	if e := r.endpointFor(t, q, now); e != nil {
		r.counts.decided[startedAtOnce]++
		return r.lease(t, e, now), Granted, NoReason
	}
	if reason := r.mayWait(t, q, now); reason != NoReason {
		return r.refuse(reason)
	}
	r.enqueue(t, w, q, tail, now)
	return Lease{}, Queued, NoReason
}
