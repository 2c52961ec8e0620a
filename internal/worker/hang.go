package worker

import "time"

const (
	// longRuns times the longest time seen until an answer is how long calls may
	// take before silence tells anything (R6).
	longRuns = 3
	// urgentAt and closedAt are the parts of the hang timeout, in eighths, after
	// which a silent worker is asked for its health every second, and gets no new
	// calls. A call that came just before has the whole timeout from then on, and
	// still the worker is replaced within one and a half.
	urgentAt = 2
	closedAt = 3
	// hangLooks is how often in a hang timeout a silent worker's CPU time is
	// read, which takes a look at every process of the machine.
	hangLooks = 10
	// hangLookMax bounds the time between two such looks.
	hangLookMax = 3 * time.Second
	// idlePart of one processor is what a hung worker may use: the runtimes of
	// languages wake up now and then to find nothing to do.
	idlePart = 500
	// idleTicks is what it may seem to use in any time: what is read is rounded twice.
	idleTicks = 2
	// pokeCost is what it may use beside that for each call and each question that
	// is sent to it. The library of a server on gRPC's C core takes them, refuses
	// them or queues them, and is told that they are given up: under 1 ms each.
	pokeCost = 3 * time.Millisecond
)

// signs are what is known of a worker when the question is whether it hangs.
// No process can tell waiting from hanging; what R6 asks for is that nothing
// speaks against it.
type signs struct {
	inFlight int
	owing    int           // calls that run there to which it owes an answer
	givenUp  int           // calls that were given up since it showed life, and may hold its threads
	silent   time.Duration // for how long it has owed an answer and shown no life; 0 if it owes none
	asked    bool          // for its health since it last said that it is well
	alone    time.Duration // for how long no call has come that it owes an answer to
	still    time.Duration // for how long its process group has used no CPU; 0 if it has, or nobody can tell
	missed   int           // health checks in a row that it did not answer while idle
	left     time.Duration // since the last call was given up there
	method   string        // of a call that it owes an answer
	longest  time.Duration // longest time seen until an answer to calls of the methods in question
}

// hung decides whether the worker is to be replaced (R6). It is if it owes an
// answer, to calls that run or to those that were given up, and for the timeout or,
// if that is longer, three times the longest run seen, it has shown no life, used no
// CPU, and had no new call. Idle it is if it has missed three checks and nothing is
// left of calls that were given up: their handlers may run on (R5), and a thread that
// works for nobody is no sickness.
func (s signs) hung(timeout time.Duration) bool {
	limit := s.limit(timeout)
	switch {
	case timeout == 0:
		return false
	case s.asked && s.silent >= limit && s.still >= limit && s.alone >= limit:
		return true
	default:
		return s.inFlight == 0 && s.missed >= maxFailures && s.left >= limit
	}
}

// urgent reports whether the worker is to be asked every second.
func (s signs) urgent(timeout time.Duration) bool {
	return timeout > 0 && s.silent >= s.limit(timeout)*urgentAt/8
}

// mute reports whether the worker is to get no new calls. All its threads are busy,
// else it would have said that it serves, so that they would only wait there.
func (s signs) mute(timeout time.Duration) bool {
	limit := s.limit(timeout)
	return timeout > 0 && s.asked && s.silent >= limit*closedAt/8 && s.still >= limit/8
}

// limit is how long silence is still work.
func (s signs) limit(timeout time.Duration) time.Duration { return max(timeout, longRuns*s.longest) }

// told is what the log tells of a silent worker.
func (s signs) told() []any {
	told := []any{"calls", s.owing, "given_up", s.givenUp, "silent", s.silent.Round(time.Millisecond).String()}
	if s.method != "" {
		told = append(told, "method", s.method)
	}
	return told
}

// stillness tells for how long a process group has used no CPU worth the name.
// The zero value watches nothing.
type stillness struct {
	since time.Time // of the first look at the present calm; zero before it
	ticks int64     // CPU time of the group then
	pokes uint64    // how often it had been poked then
	last  time.Time // of the last look
}

// look takes in the CPU time of the group, in clock ticks, and how often calls and
// questions were ever sent to it. A group that lost a process has less than before:
// that counts as use, too.
func (s *stillness) look(ticks int64, pokes uint64, now time.Time) {
	s.last = now
	free := now.Sub(s.since)/idlePart + pokeCost*time.Duration(pokes-s.pokes)
	allowed := idleTicks + int64(free*ticksPerSecond/time.Second)
	if s.since.IsZero() || ticks < s.ticks || ticks-s.ticks > allowed {
		s.since, s.ticks, s.pokes = now, ticks, pokes
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
	deaf    time.Time // when the first question was put of those in a row that were refused or not answered
	asked   uint64    // questions to which the answer, or that there is none, was heard
	signs   signs     // of the last look
}

// hear takes in an answer to the health question, or that none came.
func (h *hang) hear(v verdict, now time.Time) {
	h.asked++
	switch {
	case v.alive():
		h.excused, h.deaf = now, time.Time{}
	case h.deaf.IsZero():
		h.deaf = v.asked
	}
}

// since is from when on the worker has owed an answer and shown no life, zero if it
// owes none. It owes one to a call that runs there; to one that was given up and may
// run on (R5), until it shows that it has a thread; and if none runs to the question
// how it is.
func (h *hang) since(work Work) time.Time {
	since := work.Owed
	if work.GivenUp > 0 && work.Left.After(h.excused) {
		since = earlier(since, work.First)
	}
	if work.InFlight == 0 {
		since = earlier(since, h.deaf)
	}
	if since.IsZero() {
		return since
	}
	return later(since, later(work.Heard, h.excused))
}

// earlier returns the earlier of two instants of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// signs gathers what is known of a life at now. The CPU time is read only when
// it matters.
func (w *worker) signs(l *life, work Work, now time.Time) signs {
	s := signs{inFlight: work.InFlight, missed: l.missed, longest: work.Longest, method: work.Method, left: now.Sub(work.Left)}
	since, still := l.hang.since(work), &l.hang.still
	if since.IsZero() {
		*still = stillness{}
		return s
	}
	if work.Left.After(l.hang.excused) {
		s.givenUp = work.GivenUp
	}
	s.owing, s.silent, s.alone = work.Owing, now.Sub(since), now.Sub(work.Latest)
	if asked := l.prober.asked.Load(); asked != nil {
		s.asked = asked.After(l.hang.excused)
	}
	every := min(s.limit(w.s.settings().HangTimeout)/hangLooks, hangLookMax)
	switch {
	case s.silent < every:
		*still = stillness{}
		return s
	case now.Sub(still.last) >= every:
		if ticks, known := groupTicks(l.group); known {
			still.look(ticks, work.Opened+l.hang.asked, now)
		}
	}
	s.still = still.lasted()
	return s
}
