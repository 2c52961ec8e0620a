package rank

import "time"

// Admission decides whether a call may wait. It is one of the three replaceable
// functions of the rank (R21).
//
// Ordering: asked once per Acquire, and only if no slot is free for the call: a
// call that can start is never shed. A call that was put back (R1) is not asked
// about again.
// Returns: NoReason to let the call wait, else why not.
// Concurrency: runs under the rank's lock; it does not block and does not call
// the rank.
type Admission func(q *Request, load Load) Reason

// Load is the state of the rank that an Admission may consider.
type Load struct {
	// Now is the instant of the decision.
	Now time.Duration
	// Waiting is the number of calls in the queue, without the one in question.
	Waiting int
	// QueueLength is Options.QueueLength.
	QueueLength int
	// Ready is the number of ready endpoints.
	Ready int
	// Wait is for how long the call is expected to wait, 0 if that is not known.
	Wait time.Duration
	// Run is for how long half of the calls of its method run at least, 0 if that
	// is not known.
	Run time.Duration
}

// BoundedLength is the admission that knows no deadlines: at most
// Load.QueueLength calls wait. It is what keeps the queue bounded, so any other
// admission asks it too.
func BoundedLength(_ *Request, load Load) Reason {
	if load.Waiting >= load.QueueLength {
		return QueueFull
	}
	return NoReason
}

// InTime is the default admission: a call may wait that can be expected to end
// before its deadline (R16), as far as the length of the queue allows.
func InTime(q *Request, load Load) Reason {
	if q.Deadline != 0 && load.Run > 0 && load.Ready > 0 && q.Deadline-load.Now < load.Wait+load.Run {
		return WontFinish
	}
	return BoundedLength(q, load)
}
