package health

import (
	"sync/atomic"
	"time"
)

// What the relay asks of each call, for its evidence. Instants are since some beginning; 0
// is never.

// minOverdue is the least silence that tells anything: workers stop for as long to collect
// garbage or to load code.
const minOverdue = time.Second

// Due is when a call should have been answered that was sent at an instant, of a method
// whose runs take so long at most these days.
func Due(sent, usual time.Duration) time.Duration { return sent + max(minOverdue, longRuns*usual) }

// IsOverdue reports whether an endpoint is silent although it should long have spoken (R6):
// a call that was sent after its last byte was due, and another endpoint has spoken after
// that; spoken is when one did last. If none has, every call is simply long, or what all of
// them wait for is slow, and nobody is sick.
func IsOverdue(due, spoken, now time.Duration) bool { return due != 0 && now > due && spoken > due }

// Runs is for how long calls of a method were without an answer: from the grant of a slot
// to the first byte. What the rank has learned fades within seconds; who decides about a
// worker's life must not forget so soon.
//
// A call that was cut teaches nothing: it may have been lost in a worker that hangs. One
// that was lost with its worker after the hang timeout teaches once. If that method just
// takes so long its next call comes to its end; if that one is lost, too, the method hangs.
//
// Concurrency: every method may be called from any goroutine.
type Runs struct {
	longest atomic.Int64 // nanoseconds
	lost    atomic.Int64 // the same of the one that was lost; wasted if that did not help
	lostAt  atomic.Int64 // when; calls that began before learn nothing by it
}

// wasted stands in Runs.lost for a lesson that was of no use.
const wasted = -1

// Answered notes a time. It is rarely the longest, so that the cores read the same memory
// and do not take it from each other.
func (r *Runs) Answered(d time.Duration) {
	for longest := r.longest.Load(); int64(d) > longest; longest = r.longest.Load() {
		if r.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// Lost notes a call that was lost with its worker at now, after more than the hang
// timeout.
func (r *Runs) Lost(d, now time.Duration) {
	if r.lost.CompareAndSwap(0, int64(d)) {
		r.lostAt.Store(int64(now))
	} else if int64(now-d) >= r.lostAt.Load() {
		r.lost.Store(wasted)
	}
}

// Longest returns the longest time ever seen until an answer began, as it counts for a call
// that itself began at an instant; 0 if there was none.
func (r *Runs) Longest(began time.Duration) time.Duration {
	longest := r.longest.Load()
	if int64(began) >= r.lostAt.Load() {
		longest = max(longest, r.lost.Load())
	}
	return time.Duration(longest)
}

const (
	// mostTurned is how many connections in a row may turn away their calls before an
	// endpoint gets fewer: one such end is usual where a worker is about to stop, or
	// bounds the age of its connections.
	mostTurned = 2
	// TurnedFor is for how long that must have gone on without an answer in between. A
	// call that nobody takes ends connections as fast as it moves, and the calls of
	// others that it meets there have to be answered first.
	TurnedFor = time.Second
)

// Turned counts the connections in a row that have turned calls away: they ended with calls
// on them that the endpoint had not looked at, and it has answered none in between. It may be
// the endpoint's fault, which would do so with any call, or the call's, which nobody takes.
type Turned struct {
	times       int
	first, last time.Duration
}

// Add notes such an end; answered is when the endpoint last answered a call.
func (t *Turned) Add(answered, now time.Duration) {
	if t.times == 0 || answered >= t.first {
		*t = Turned{first: now}
	}
	t.times, t.last = t.times+1, now
}

// Any reports whether there was one.
func (t *Turned) Any() bool { return t.times > 0 }

// Last is when the last one was, 0 for never or if it is not the endpoint that turns calls
// away.
func (t *Turned) Last() time.Duration {
	if t.times > mostTurned && t.last-t.first >= TurnedFor {
		return t.last
	}
	return 0
}
