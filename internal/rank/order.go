package rank

import "time"

// Order decides in which order the calls of one account are served. It is one of
// the three replaceable functions of the rank (R21).
//
// Shape: asked before a call is taken from a line that is not empty. It returns
// whether the newest is served first from now on; otherwise it is first come,
// first served.
// Concurrency: runs under the rank's lock; it does not block and does not call
// the rank.
type Order func(l *Standing, now time.Duration) (newestFirst bool)

// Standing is what an Order may consider of a line.
type Standing struct {
	// Oldest is the call that has waited longest.
	Oldest *Ticket
	// Overloaded says that more work comes than there are slots for, beyond what
	// chance would explain.
	Overloaded bool
	// Since is memory of the line's own, 0 at first and whenever it was empty.
	Since time.Duration
	// Newest is what the order said last.
	Newest bool
}

// FIFO is the order that knows no overload: first come, first served.
func FIFO(*Standing, time.Duration) bool { return false }

// What makes a standing queue. Each call has a time in which it must be served:
// until its deadline or the end of queue.timeout. As long as the oldest call has
// waited less than a part of that, a queue is what it should be, a buffer for
// bursts.
const (
	// standingPart is the part of its time that the oldest call has waited when
	// the queue begins to count as a standing one.
	standingPart = 8
	// standingFor is for how long that must be so, without a break, if more work
	// comes than can be done.
	standingFor = 100 * time.Millisecond
	// latePart is the part of its time that the oldest call must have waited if
	// it is not known that too much comes: long calls make queues, too, that go
	// away by themselves. It must be so for lateTimes of that time.
	latePart  = 2
	lateTimes = 2
	// stalePart is the part of its time after which a call has hardly a chance
	// while newer ones go first: it is told so when its caller can still do
	// something about it.
	stalePart = 2
)

// Adaptive is the default order: first come, first served, but newest first
// while overload lasts.
//
// In a queue that does not get shorter everybody waits until it is nearly too
// late, and what is served is of use to nobody. Served from the other end, most
// calls hardly wait, and those that cannot be served are told early.
// Source: Maurer, "Fail at Scale", ACM Queue 2015 (adaptive LIFO); Nichols and
// Jacobson, "Controlling Queue Delay", ACM Queue 2012 (how a standing queue is
// told from a burst).
func Adaptive(l *Standing, now time.Duration) bool {
	if !l.Oldest.waitedPart(standingPart, now) {
		l.Since, l.Newest = 0, false
		return false
	}
	if l.Since == 0 {
		l.Since = max(now, 1)
	}
	stood := now - l.Since
	switch {
	case l.Newest: // until the queue is short again
	case l.Overloaded:
		l.Newest = stood >= standingFor
	default:
		l.Newest = l.Oldest.waitedPart(latePart, now) && stood >= lateTimes*l.Oldest.time()
	}
	return l.Newest
}

// time returns the time in which the call must be served; 0 if it may take any.
func (t *Ticket) time() time.Duration {
	q := &t.Request
	end := q.Until
	if q.Deadline != 0 && (end == 0 || q.Deadline < end) {
		end = q.Deadline
	}
	return max(end-q.Arrived, 0)
}

// waitedPart reports whether the call has waited for more than 1/part of the
// time in which it must be served.
func (t *Ticket) waitedPart(part, now time.Duration) bool {
	all := t.time()
	return all != 0 && now-t.Request.Arrived > all/part
}
