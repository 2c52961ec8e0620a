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

// Standing is what an Order may consider of a line, and what it remembers of it.
type Standing struct {
	// Time is in what time its last call had to be served when it came: until its
	// deadline or the end of queue.timeout. 0 if it may take any.
	Time time.Duration
	// Wait is for how long that call would wait from now on in the order of arrival,
	// and half of its kind run: 0 if that is not known.
	Wait time.Duration
	// Gap is the mean time between two calls of the queue that get a slot.
	Gap time.Duration

	// What follows is the order's own, and zero whenever the line was empty.

	Newest bool          // what the order said last
	Turned time.Duration // when that began; 0: it has always been so
	Gaps   time.Duration // Gap at that instant
	Left   time.Duration // Wait at that instant
	Late   time.Duration // since when Wait has been too long; 0: it is not
}

// FIFO is the order that knows no overload: first come, first served.
func FIFO(*Standing, time.Duration) bool { return false }

const (
	// lateParts says when the order of arrival has failed: a call that comes now
	// would have but one part of its time left, of so many.
	lateParts = 16
	// lateFor is for what part of its time that must be so, without a break.
	lateFor = 10
	// newestFor is for how long the newest goes first then, at least; for calls that
	// have more time it is one and a half times that. It must end: callers who come
	// back as soon as they are refused look like more work than can be done,
	// whatever the order, and only the order of arrival can tell.
	newestFor = 1500 * time.Millisecond
	// trial is for how long after that less is enough: that Wait is longer than five
	// eighths of a call's time and has grown by a quarter since. It does not where
	// callers wait for answers before they send more.
	trial = 2 * time.Second
)

// Adaptive is the default order: first come, first served, but newest first for a
// moment whenever that would serve the calls that come too late.
//
// In a queue that has grown so long everybody waits until it is nearly too late,
// and much of what is served is of use to nobody. Served from the other end, most
// calls hardly wait.
// Source: Maurer, "Fail at Scale", ACM Queue 2015 (adaptive LIFO); Bronson et al.,
// "Metastable Failures in Distributed Systems", HotOS 2021 (why it must not last).
func Adaptive(l *Standing, now time.Duration) bool {
	switch {
	case l.Newest:
		// Twice as many slots or more: what was too long for them may not be now.
		if now-l.Turned >= max(newestFor, l.Time+l.Time/2) || l.Gap <= l.Gaps/2 {
			l.turn(false, now)
		}
	case !l.tooLong(now):
		l.Late = 0
	case l.Late == 0 && !l.tried(now):
		l.Late = max(now, 1)
	case l.tried(now) || now-l.Late >= l.Time/lateFor:
		l.turn(true, now)
	}
	return l.Newest
}

func (l *Standing) turn(newest bool, now time.Duration) {
	l.Newest, l.Turned, l.Gaps, l.Left, l.Late = newest, now, l.Gap, l.Wait, 0
}

// tried reports whether the order of arrival is on trial.
func (l *Standing) tried(now time.Duration) bool { return l.Turned != 0 && now-l.Turned < trial }

// tooLong reports whether the order of arrival would serve the line's last call too
// late.
func (l *Standing) tooLong(now time.Duration) bool {
	most := l.Time - l.Time/lateParts
	if l.tried(now) {
		most = min(most, max(l.Time*5/8, l.Left*5/4))
	}
	return l.Time > 0 && l.Wait > most
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
