package rank

import "time"

// SetOutage says whether endpoints are not expected to become ready soon. In an outage
// without a ready endpoint, new and waiting calls are refused with NoneReady: they would
// only wait for their deadlines. It appends to into the notices that it made and returns
// the result, for the caller to deliver.
//
// Ready endpoints are used all the same.
func (r *Rank) SetOutage(outage bool, now time.Duration, into []Notice) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outage = outage
	return r.serve(now, into)
}

// noneExpected reports whether no endpoint is ready or expected to become ready.
func (r *Rank) noneExpected() bool { return r.outage && r.Ready() == 0 }

// refuseAllWaiting refuses all waiting calls. All are in the queue for any endpoint: none is up.
//
// Cost: O(waiting calls), once for an outage.
func (r *Rank) refuseAllWaiting(into []Notice) []Notice {
	for t := r.queue.first(); t != nil; t = r.queue.first() {
		into = r.refuseWaiting(t, NoneReady, into)
	}
	return into
}
