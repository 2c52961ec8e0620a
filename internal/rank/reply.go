package rank

import "strconv"

// Reply is the rank's immediate answer to a call that asks for a slot.
type Reply uint8

const (
	// Granted means that the lease is valid and the call may start.
	Granted Reply = iota + 1
	// Queued means that the waiter will be told, unless the ticket leaves.
	Queued
	// Refused means that the call gets no slot; its ticket is free again.
	Refused
)

// String returns the reply in lower case, for logs and tests.
func (r Reply) String() string {
	switch r {
	case Granted:
		return "granted"
	case Queued:
		return "queued"
	case Refused:
		return "refused"
	}
	return "reply " + strconv.Itoa(int(r))
}

// Reason is why the rank refused a call. Each has a stable name of its own, so
// that refusals can be counted apart.
type Reason uint8

const (
	// NoReason is the zero value: the call was not refused.
	NoReason Reason = iota
	// QueueFull means that the queue is full.
	QueueFull
	// DeadlineExceeded means that the deadline of the call passed before it got a
	// slot.
	DeadlineExceeded
	// WontFinish means that the deadline of the call would have passed before its
	// answer (R16).
	WontFinish
	// RateLimited means that the call's account has begun too many calls.
	RateLimited
	// TooManyCalls means that too many calls of its account are waiting, running or held
	// as ghosts.
	TooManyCalls
	// NoneReady means that no endpoint is ready or expected to become ready soon.
	NoneReady
	reasons // how many there are
)

// String returns the reason as a metrics label: lower case, underscores.
func (r Reason) String() string {
	switch r {
	case NoReason:
		return "none"
	case QueueFull:
		return "queue_full"
	case DeadlineExceeded:
		return "deadline_exceeded"
	case WontFinish:
		return "wont_finish"
	case RateLimited:
		return "rate_limited"
	case TooManyCalls:
		return "too_many_calls"
	case NoneReady:
		return "none_ready"
	case reasons:
	}
	return "reason_" + strconv.Itoa(int(r))
}

// Outcome is how a lease ended.
type Outcome uint8

const (
	// OK means that the worker answered; an application's own error is an
	// answer too. It ends the endpoint's row of refusals.
	OK Outcome = iota + 1
	// Failed means that the call broke at the endpoint or on the way there. It counts
	// as a slow call: an endpoint that fails quickly must not attract calls.
	Failed
	// RefusedByWorker means that the worker had no free thread (R1). The slot pauses.
	RefusedByWorker
	// Cancelled means that the caller left, or its deadline passed, while the call was
	// running. Request.OnCancel or the endpoint decides about the slot.
	Cancelled
	// Faulty means that the worker answered with a status that tells of a fault of its
	// own. It is like OK, but the call counts as slow, as with Failed.
	Faulty
	// NotSent means that the endpoint has not seen the call: the call ended on its way
	// there, or the endpoint cannot be reached. Nothing is learned from it, and it leaves
	// no ghost.
	NotSent
	// MaybeRefused means that the worker answered like one without a free thread, but
	// that the answer may also come from a handler that has run: so the call does not
	// come back. Its slot pauses for the usual run time of such calls, 1 ms at least and
	// 250 ms at most.
	MaybeRefused
	// Lost means that the connection was lost under the call. The slot pauses as
	// after a refusal.
	Lost
)
