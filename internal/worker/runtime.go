package worker

import "time"

const (
	// burnFor is how long a worker must be seen to compute without a pause to be
	// ended for its run time. A handler that waits for an answer computes for
	// moments, when it comes.
	burnFor = 5 * time.Second
	// burnEvery is how often its CPU time is read meanwhile, which takes a look
	// at every process of the machine.
	burnEvery = time.Second
	// burnPart of one processor between any two looks is computing. A thread that
	// loops takes a whole one, and still a quarter where four of them share it; a
	// handler that waits, and runtimes that look around, take some hundredths. A
	// control group with a quota below a quarter of a processor hides it.
	burnPart = 4
)

// burn is what a worker's goroutine remembers in order to tell whether its
// process computes for too long. The zero value has seen nothing.
type burn struct {
	since time.Time // when the oldest call was sent that the worker owes an answer; zero if none
	from  time.Time // of the first look in a row that saw it compute; zero if there is none
	last  time.Time // of the last look
	ticks int64     // CPU time of the group then
}

// owes takes in what the data plane sees. said is when the worker last answered
// a health check, or could not.
//
// A call counts that was sent to its end and has not been answered with a byte.
// A stream that is being answered may live as long as it likes. A call that its
// caller gave up counts until the worker says anything: most callers have a
// deadline, and the handler that it leaves behind is the one that loops (R5).
func (b *burn) owes(work Work, said time.Time) {
	word := said
	for _, t := range []time.Time{work.Heard, work.Answered} {
		if t.After(word) {
			word = t
		}
	}
	spoke := !word.Before(b.since)
	switch {
	case !work.Owed.IsZero():
		if b.since.IsZero() || spoke || work.Owed.Before(b.since) {
			b.since = work.Owed
		}
	case spoke || work.Left.Before(b.since):
		b.since = time.Time{}
	}
}

// due reports whether the CPU time is to be read now: as soon as it can matter
// for the limit, and not too often.
func (b *burn) due(limit time.Duration, now time.Time) bool {
	if b.since.IsZero() || now.Sub(b.since) < limit-burnFor {
		b.from, b.last = time.Time{}, time.Time{}
		return false
	}
	return now.Sub(b.last) >= burnEvery
}

// look takes in the CPU time of the group, in clock ticks. A group that lost a
// process has less than before; what it did meanwhile is not known.
func (b *burn) look(ticks int64, now time.Time) {
	needed := int64(now.Sub(b.last) * ticksPerSecond / burnPart / time.Second)
	switch {
	case b.last.IsZero() || ticks-b.ticks < needed:
		b.from = time.Time{}
	case b.from.IsZero():
		b.from = b.last
	}
	b.last, b.ticks = now, ticks
}

// over decides whether the worker is to be replaced: it owes an answer for
// longer than the limit, and has computed all the time that it was looked at.
func (b *burn) over(limit time.Duration, now time.Time) bool {
	return limit > 0 && !b.since.IsZero() && now.Sub(b.since) >= limit &&
		!b.from.IsZero() && b.last.Sub(b.from) >= burnFor
}

// checkRunTime ends a process that computes for a call that should be over.
func (w *worker) checkRunTime(l *life, work Work, now time.Time) {
	limit := w.s.settings().MaxRunTime
	if limit == 0 || l.doomed {
		return
	}
	b := &l.burn
	b.owes(work, l.hang.excused)
	if b.due(limit, now) {
		if ticks, known := groupTicks(l.group); known {
			b.look(ticks, now)
		}
	}
	if !b.over(limit, now) {
		return
	}
	w.log.Warn("worker computes for too long, killed", "pid", l.group, "calls", work.InFlight,
		"running", now.Sub(b.since).Round(time.Millisecond).String(), "max_run_time", limit.String())
	w.doom(l, CauseRunTime)
}
