package rank

import (
	"time"
)

// Admission decides whether a call may wait. It is one of the three replaceable
// functions of the rank (R21).
//
// Ordering: called once per Acquire, and only if no slot is free for the call: a
// call that can start is never refused. It is not called again for a call that was
// put back (R1).
// Returns: NoReason to let the call wait, else the reason to refuse it.
// Concurrency: runs under the rank's lock; it does not block and does not call
// the rank.
type Admission func(q *Request, state QueueState) Reason

// QueueState is the state of the rank that an Admission may consider.
type QueueState struct {
	// Now is the instant of the decision.
	Now time.Duration
	// Waiting is the number of calls in the queue, without the new one.
	Waiting int
	// QueueLength is Options.QueueLength.
	QueueLength int
	// Ready is the number of ready endpoints.
	Ready int
	// Wait is the expected wait of the call, 0 if that is not known.
	Wait time.Duration
	// Run is the median run time of the call's method, 0 if that is not known.
	Run time.Duration
}

// BoundedLength is the admission that ignores deadlines: at most QueueLength calls
// wait. It keeps the queue bounded, so every other admission asks it too.
func BoundedLength(_ *Request, state QueueState) Reason {
	if state.Waiting >= state.QueueLength {
		return QueueFull
	}
	return NoReason
}

// InTime is the default admission: a call may wait if it can be expected to end
// before its deadline (R16) and the queue is not full.
func InTime(q *Request, state QueueState) Reason {
	if q.Deadline != 0 && state.Run > 0 && state.Ready > 0 && q.Deadline-state.Now < state.Wait+state.Run {
		return WontFinish
	}
	return BoundedLength(q, state)
}

// Overloaded returns the number of callers whose newest call goes first now, because
// more of their calls come than can be served in time. It takes no lock. Each time the
// number changes Wake asks for a Tick.
func (r *Rank) Overloaded() int { return int(r.overloaded.Load()) }

// reordered notes that the order of a list may have changed.
func (r *Rank) reordered(before, now bool) {
	switch {
	case before == now:
		return
	case now:
		r.overloaded.Add(1)
		r.counts.decided[flippedNewest]++
	default:
		r.overloaded.Add(-1)
		r.counts.decided[flippedBack]++
	}
	r.poke()
}

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
