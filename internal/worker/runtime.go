package worker

import "time"

const (
	// computeFor is how long a worker must be seen to compute without a pause before it is
	// ended for its run time. A handler that waits for answers computes only for
	// moments.
	computeFor = 6 * time.Second
	// cpuEvery is how often its CPU time is read meanwhile. Each time every process of
	// the machine is looked at.
	cpuEvery = 2 * time.Second
	// A worker computes if it used 1/computePart of a processor since the last look. A
	// thread that loops uses a whole one, and still an eighth where eight of them share
	// it; a handler that waits, and a runtime's own threads, use some hundredths.
	computePart = 8
	// A worker is calm below 1/calmPart of a processor: a thread that loops gets more,
	// except on a hopelessly overloaded machine. Between the two nothing is decided.
	calmPart = 100
)

// cpuWatch is what a worker's goroutine remembers to decide whether its process computes
// for too long, in one of two cases:
//
//   - for a call that was sent to its end and has not been answered with a byte. A
//     stream that is being answered may go on for ever;
//   - for nobody, since the last call there ended: most callers have a deadline, and
//     the handler that they leave behind is the one that loops (R5). While other calls
//     run there, such a handler cannot be told from the work on them.
//
// The zero value has seen nothing.
type cpuWatch struct {
	since     time.Time     // when the call was sent, or the last one ended; zero: neither
	forNobody bool          // the second case
	from      time.Time     // of the first look in a row that saw it compute; zero without one
	last      time.Time     // of the last look
	cpu       time.Duration // of the group then

	served uint64    // Work.Served at the last look
	ended  time.Time // when that changed; zero if the worker has been calm since
}

// see takes in the evidence of the data plane.
func (b *cpuWatch) see(work Work, now time.Time) {
	if work.Served != b.served {
		b.served, b.ended = work.Served, now
	}
	word := work.Heard
	if work.Answered.After(word) {
		word = work.Answered
	}
	mute := !b.since.IsZero() && !b.forNobody && word.Before(b.since)
	switch {
	case !work.Owed.IsZero():
		if !mute || work.Owed.Before(b.since) {
			b.begin(work.Owed, false)
		}
	case mute && !work.Left.Before(b.since):
		// The call was given up, and the worker has answered nothing since it was sent:
		// other calls wait for the same handler.
	case work.InFlight > 0:
		b.begin(time.Time{}, false)
	default:
		b.begin(b.ended, true)
	}
}

func (b *cpuWatch) begin(since time.Time, nobody bool) {
	if !b.since.Equal(since) || b.forNobody != nobody {
		b.since, b.forNobody, b.from, b.last = since, nobody, time.Time{}, time.Time{}
	}
}

// due reports whether the CPU time is to be read now: early enough for the limit, and
// not too often.
func (b *cpuWatch) due(limit time.Duration, now time.Time) bool {
	wait := limit - computeFor
	if b.forNobody {
		wait = cpuEvery
	}
	return !b.since.IsZero() && now.Sub(b.since) >= wait && now.Sub(b.last) >= cpuEvery
}

// look takes in the CPU time of the group. If a process of the group has
// ended the sum is less than before, and nothing is known of the time between.
func (b *cpuWatch) look(cpu time.Duration, now time.Time) {
	used, all := cpu-b.cpu, now.Sub(b.last)
	switch {
	case b.last.IsZero():
	case used < all/computePart:
		b.from = time.Time{}
		if b.forNobody && used >= 0 && used <= all/calmPart {
			b.ended = time.Time{} // later computing has another cause
		}
	case b.from.IsZero():
		b.from = b.last
	}
	b.last, b.cpu = now, cpu
}

// over decides whether the worker is to be replaced: it owes an answer for
// longer than the limit and has computed without a pause for computeFor, or it
// has computed for nobody all the time that the limit allows.
func (b *cpuWatch) over(limit time.Duration, now time.Time) bool {
	if limit == 0 || b.since.IsZero() || b.from.IsZero() {
		return false
	}
	computed := b.last.Sub(b.from)
	if b.forNobody {
		return computed >= max(limit, computeFor)
	}
	return now.Sub(b.since) >= limit && computed >= computeFor
}

// checkRunTime ends a process that computes for a call that should be over.
func (w *worker) checkRunTime(l *child, work Work, now time.Time) {
	limit := w.s.settings().MaxRunTime
	if limit == 0 || l.killed {
		return
	}
	b := &l.cpuWatch
	b.see(work, now)
	if b.due(limit, now) {
		if cpu, known := l.group.CPU(); known {
			b.look(cpu, now)
		}
	}
	if !b.over(limit, now) {
		return
	}
	w.log.Warn("worker computes for too long, killed", "pid", l.group, "calls", work.InFlight, "method", work.Method,
		"since", now.Sub(b.since).Round(time.Millisecond).String(), "for_nobody", b.forNobody, "max_run_time", limit.String())
	w.killFor(l, CauseRunTime)
}
