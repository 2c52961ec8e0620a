package rank

import "time"

// SetOutage says that whoever brings endpoints up does not expect to do so soon,
// or that it does again. While no endpoint is ready then, calls are refused with
// NoneReady, those that wait too: they would only wait for their deadlines. It
// appends to into the grants that it made and returns the result, for the caller
// to deliver.
//
// Endpoints that are ready are used all the same, whoever has brought them up.
func (r *Rank) SetOutage(outage bool, now time.Duration, into []Grant) []Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outage = outage
	return r.serve(now, into)
}

// forsaken reports whether there is nothing that a call could wait for.
func (r *Rank) forsaken() bool { return r.outage && r.Ready() == 0 }

// dismissAll refuses all calls that wait. None is bound: nothing is up.
//
// Cost: O(calls that wait), once when the last hope goes.
func (r *Rank) dismissAll(into []Grant) []Grant {
	for t := r.queue.first(); t != nil; t = r.queue.first() {
		into = r.dismiss(t, NoneReady, into)
	}
	return into
}
