package rank

import "time"

// Order decides in which order the calls of one account are served. It is one of
// the three replaceable functions of the rank (R21).
//
// Shape: called before a call is taken from a list that is not empty. It returns
// whether the newest is served first from now on; otherwise it is first come, first
// served.
// Concurrency: runs under the rank's lock; it does not block and does not call
// the rank.
type Order func(l *OrderState, now time.Duration) (newestFirst bool)

// OrderState is what an Order may consider of an account's list of waiting calls, and
// what it remembers of it.
type OrderState struct {
	// Time is how soon the last call had to be served when it came: by its deadline or
	// the end of queue.timeout. 0 means that it has neither.
	Time time.Duration
	// Wait is the expected wait of that call from now on, in the order of arrival, with
	// the median run of its method: 0 if that is not known.
	Wait time.Duration
	// Gap is the mean time between two calls of the queue that get a slot.
	Gap time.Duration

	// Only the order writes the following fields. They are zero after the list was empty.

	Newest  bool          // the last result of the order
	Flipped time.Duration // since when; 0: always
	Gaps    time.Duration // Gap at that instant
	Left    time.Duration // Wait at that instant
	Late    time.Duration // since when Wait has been too long; 0: it is not
}

// FIFO is the order that ignores overload: first come, first served.
func FIFO(*OrderState, time.Duration) bool { return false }

const (
	// lateParts says when the order of arrival has failed: a new call would have only
	// 1/lateParts of its time left.
	lateParts = 16
	// lateFor says for how long that must last without a break: 1/lateFor of the time of
	// a call.
	lateFor = 10
	// newestFor is how long the newest then goes first at least; it is one and a half
	// times the time of a call if that is longer. It must end: callers that come back as
	// soon as they are refused look like overload in either order, and only the order of
	// arrival can tell.
	newestFor = 1500 * time.Millisecond
	// trial is how long after that less is enough for the newest to go first again: Wait
	// must be longer than five eighths of a call's time and have grown by a quarter. It
	// does not grow where callers wait for answers before they send more.
	trial = 2 * time.Second
)

// Adaptive is the default order: first come, first served, but newest first for a
// moment whenever that would serve the calls that come too late.
//
// In a queue that is so long every call waits until it is nearly too late, and many
// answers are of no use any more. Served from the other end, most calls hardly wait.
// Source: Maurer, "Fail at Scale", ACM Queue 2015 (adaptive LIFO); Bronson et al.,
// "Metastable Failures in Distributed Systems", HotOS 2021 (why it must not last).
func Adaptive(l *OrderState, now time.Duration) bool {
	switch {
	case l.Newest:
		// With twice as many slots the queue may not be too long any more.
		if now-l.Flipped >= max(newestFor, l.Time+l.Time/2) || l.Gap <= l.Gaps/2 {
			l.flip(false, now)
		}
	case !l.tooLong(now):
		l.Late = 0
	case l.Late == 0 && !l.onTrial(now):
		l.Late = max(now, 1)
	case l.onTrial(now) || now-l.Late >= l.Time/lateFor:
		l.flip(true, now)
	}
	return l.Newest
}

func (l *OrderState) flip(newest bool, now time.Duration) {
	l.Newest, l.Flipped, l.Gaps, l.Left, l.Late = newest, now, l.Gap, l.Wait, 0
}

// onTrial reports whether the order of arrival is on trial.
func (l *OrderState) onTrial(now time.Duration) bool { return l.Flipped != 0 && now-l.Flipped < trial }

// tooLong reports whether the order of arrival would serve the list's last call too
// late.
func (l *OrderState) tooLong(now time.Duration) bool {
	most := l.Time - l.Time/lateParts
	if l.onTrial(now) {
		most = min(most, max(l.Time*5/8, l.Left*5/4))
	}
	return l.Time > 0 && l.Wait > most
}

// time returns the time in which the call must be served; 0 if it has no limit.
func (t *Ticket) time() time.Duration {
	q := &t.Request
	end := q.Until
	if q.Deadline != 0 && (end == 0 || q.Deadline < end) {
		end = q.Deadline
	}
	return max(end-q.Arrived, 0)
}
