package rank

import "time"

const (
	// mostLate is how late a thread can be in any worker. Where calls run for longer
	// it can be as late as a call is long, up to maxPause: each of the others may
	// compute for its turn first, where only one thread computes at a time.
	mostLate = 5 * time.Millisecond
	// lateForgotten is the part of it that a call takes away which was given a
	// slot as early as may be and was not refused. With a half added by a refusal
	// one such call in 6,600 is refused in the long run.
	lateForgotten = 16384
	// leastLate is what is not worth waiting for.
	leastLate = 20 * time.Microsecond
	// lateRuns is how many runs their mean is taken over, about.
	lateRuns = 16
)

// lateness is by how much later an endpoint's slots are free than its answers
// say, learned from its refusals: a Ruby worker answers before its thread is back
// in the pool. Slots wait as long from then on, for a call that is refused cannot
// always be sent again (R1).
//
// Concurrency: belongs to the rank's lock. Allocates nothing.
type lateness struct {
	by     time.Duration
	raised time.Duration // when that was last made longer
	before time.Duration // what it was before refusals came one soon after the other
	run    time.Duration // how long calls run, smoothed
}

// reach is how late a thread can be.
func (l *lateness) reach() time.Duration { return min(max(l.run, mostLate), maxPause) }

// refused learns from a refusal at now of a call that was granted at granted. All
// that are refused in one burst are one lesson.
func (l *lateness) refused(granted, now time.Duration) {
	if granted < l.raised {
		return
	}
	if now-l.raised > shrinkWithin {
		l.before = l.by
	}
	first := min(max(now-granted, minPause/4), minPause)
	l.by = min(max(l.by*3/2, first), l.reach())
	l.raised = now
}

// unlearn takes back what was learned of refusals that came one soon after the
// other: their reason was another one. Meanwhile answers may have told of less.
func (l *lateness) unlearn() { l.by = min(l.by, l.before) }

// answered learns from an answer after a run. tight says that the call was given
// the last slot there was: only such a call can tell that slots need not wait for
// as long.
func (l *lateness) answered(run time.Duration, tight bool) {
	l.run += (run - l.run) / lateRuns
	if tight {
		l.by -= l.by / lateForgotten
	}
	if l.by < leastLate {
		l.by = 0
	}
}

// latenessOf returns what an endpoint begins with: what was learned of the process
// before, or the least that is known of others, for all run the same program. Each
// would else have to refuse calls first.
func (r *Rank) latenessOf(e *Endpoint) lateness {
	by := e.lateness.by
	if by == 0 && e.refuses {
		for _, x := range r.up {
			if l := x.lateness.by; l > 0 && (by == 0 || l < by) {
				by = l
			}
		}
	}
	return lateness{by: by, before: by}
}

// lateThreads remembers when calls ended, to tell how many threads of a worker
// may still be busy although their calls have ended.
type lateThreads struct {
	ends  [32]time.Duration // the last ones: more do not count
	calls uint
}

func (l *lateThreads) add(now time.Duration) {
	l.ends[l.calls%uint(len(l.ends))] = now
	l.calls++
}

// since returns how many calls have ended after an instant.
func (l *lateThreads) since(then time.Duration) int {
	n := 0
	for _, at := range l.ends[:min(l.calls, uint(len(l.ends)))] {
		if at > then {
			n++
		}
	}
	return n
}
