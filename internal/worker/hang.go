package worker

import "time"

const (
	// longRuns times the longest run seen of a method is how long its calls may
	// take before silence tells anything (R6).
	longRuns = 3
	// hangLooks is how often in a hang timeout a silent worker's CPU time is
	// read, which takes a look at every process of the machine.
	hangLooks = 10
	// hangLookMax bounds the time between two such looks.
	hangLookMax = 3 * time.Second
	// idlePart of one processor is what a hung worker may use: the runtimes of
	// languages wake up now and then to find nothing to do.
	idlePart = 500
)

// signs are what is known of a worker when the question is whether it hangs.
// No process can tell waiting from hanging; what R6 asks for is that nothing
// speaks against it.
type signs struct {
	inFlight int
	silent   time.Duration // for how long it has owed an answer and said nothing; 0 if it owes none
	still    time.Duration // for how long its process group has used no CPU; 0 if it has, or nobody can tell
	missed   int           // health checks in a row that it did not answer while idle
	left     time.Duration // since the last call was given up there
	longest  time.Duration // longest run seen of the methods in question
}

// hung decides whether the worker is to be replaced (R6). With calls in flight
// it is if it owes an answer, has sent no byte and used no CPU for the timeout
// or, if that is longer, three times the longest run seen. Idle it is if it has
// missed three checks and nothing is left of calls that were given up: their
// handlers may run on (R5), and a thread that works for nobody is no sickness.
func (s signs) hung(timeout time.Duration) bool {
	limit := s.limit(timeout)
	switch {
	case timeout == 0:
		return false
	case s.inFlight > 0:
		return s.silent >= limit && s.still >= limit
	default:
		return s.missed >= maxFailures && s.left >= limit
	}
}

// limit is how long silence is still work.
func (s signs) limit(timeout time.Duration) time.Duration { return max(timeout, longRuns*s.longest) }

// stillness tells for how long a process group has used no CPU worth the name.
// The zero value watches nothing.
type stillness struct {
	since time.Time // of the first look at the present calm; zero before it
	ticks int64     // CPU time of the group then
	last  time.Time // of the last look
}

// look takes in the CPU time of the group, in clock ticks. A group that lost a
// process has less than before: that counts as use, too.
func (s *stillness) look(ticks int64, now time.Time) {
	s.last = now
	allowed := 1 + int64(now.Sub(s.since)/idlePart*ticksPerSecond/time.Second)
	if s.since.IsZero() || ticks < s.ticks || ticks-s.ticks > allowed {
		s.since, s.ticks = now, ticks
	}
}

// lasted is for how long the group has been seen to be still.
func (s *stillness) lasted() time.Duration { return s.last.Sub(s.since) }

// hang is what a worker's goroutine remembers in order to tell whether its
// process hangs.
type hang struct {
	still stillness
	// excused is until when silence says nothing: the process was stopped, or
	// has answered a health check and so has a free thread.
	excused time.Time
}

// signs gathers what is known of a life at now. The CPU time is read only when
// it matters.
func (w *worker) signs(l *life, work Work, now time.Time) signs {
	s := signs{inFlight: work.InFlight, missed: l.missed, longest: work.Longest, left: now.Sub(work.Left)}
	if work.InFlight == 0 || work.Owed.IsZero() {
		l.hang.still = stillness{}
		return s
	}
	since := work.Owed
	for _, t := range []time.Time{work.Heard, l.hang.excused} {
		if t.After(since) {
			since = t
		}
	}
	s.silent = now.Sub(since)
	every := min(s.limit(w.s.settings().HangTimeout)/hangLooks, hangLookMax)
	switch still := &l.hang.still; {
	case s.silent < every:
		*still = stillness{}
	case now.Sub(still.last) >= every:
		if ticks, known := groupTicks(l.group); known {
			still.look(ticks, now)
		}
		s.still = still.lasted()
	default:
		s.still = still.lasted()
	}
	return s
}
