// Package health is the one judge of endpoints: workers and endpoints elsewhere. Evidence
// goes in, a verdict comes out (R6).
//
// Start from Judge. The evidence is what calls tell (Work, which the relay gathers), what
// the endpoint says of its health (Answer, for which package check asks), and the CPU time
// that its processes use. The verdict is OK, Suspect or Hung; who watches the endpoint
// acts on it (packages worker and discover). Saturation is no sickness: an endpoint that is
// busy is OK, whatever it does not say.
//
// docs/worker-health.md has the rules and a table of cases, which a test runs. Time is
// handed in.
package health

import "time"

const (
	// maxFailures questions in a row that an endpoint fails take it out, or replace it.
	maxFailures = 3
	// longRuns times the longest time seen until an answer is how long calls may take
	// before silence tells anything.
	longRuns = 3
	// urgentAt and closedAt are the parts of the hang timeout, in eighths, after which a
	// silent endpoint is asked for its health every second, and gets no new calls. A call
	// that came just before has the whole timeout from then on, and still the endpoint is
	// replaced within one and a half.
	urgentAt = 2
	closedAt = 3
	// ownThreads are those that a server has beside the ones for calls: its first, and one
	// that takes calls.
	ownThreads = 2
)

// TurnsAway is the reason of an endpoint that is suspect for what it does with calls,
// whatever it says of its health.
const TurnsAway = "it ends connections with calls on them that it has not looked at (GOAWAY)"

// noService is the reason of one that is silent behind a library that answers for it.
const noService = "it has no health service by which to tell whether a thread is free"

// Verdict is what is thought of an endpoint that serves.
type Verdict uint8

const (
	// OK is an endpoint that works, is busy, or idle.
	OK Verdict = iota
	// Suspect is one that is silent, or turns calls away. It keeps its calls and counts as
	// ready; one that is silent gets no new ones until it speaks.
	Suspect
	// Hung is one that is to be replaced.
	Hung
)

// Judge judges one endpoint after all that is known of it. The zero value has no evidence
// yet: the endpoint does not serve.
//
// Concurrency: a Judge belongs to one goroutine.
type Judge struct {
	// Timeout is hang_timeout, how long an endpoint may be silent and still at least; with
	// 0 none is hung, and one that is idle and deaf is out.
	Timeout time.Duration
	// Process tells of the endpoint's processes; nil: nobody can.
	Process Process
	// Serving says that the endpoint may have calls, by what it has said of its health.
	Serving bool
	// Reason is why it does not, or is suspect, in the words of its last answer.
	Reason string

	suspect  time.Time // since when it is suspect for its silence; zero: it is not
	closed   bool      // it is so by its silence alone, as its library says nothing of its threads
	library  bool      // which gives the answers, and has given the last one
	hidden   bool      // it has ever given one
	question time.Time // when it was asked for the last one
	turns    bool      // calls away
	failures int       // questions in a row that it has failed
	missed   int       // questions in a row that it has left unanswered while idle

	// lived is until when silence says nothing: it has answered a question and so has a
	// free thread, or nobody could tell.
	lived   time.Time
	deaf    time.Time // when the first question was put of those in a row without an answer of a thread
	heard   uint64    // questions of which the end was heard
	still   stillness
	silence silence // at the last look
}

// silence is what a look finds of an endpoint that owes an answer; durations are 0 if it
// owes none.
type silence struct {
	work  Work
	limit time.Duration // how long it is still work
	lasts time.Duration // since it owes an answer and has shown no life
	still time.Duration // its processes have used no CPU; 0 if they have, or nobody can tell
	asked bool          // for its health since it last showed life
	alone time.Duration // since the last call came that it owes an answer to
	left  time.Duration // since a call was last given up there
}

// Hear takes in an answer to the health question, or that none came. NOT_SERVING counts at
// once, three questions in a row that an idle endpoint fails take it out. Whoever is busy
// with calls that take as long as usual is just busy.
func (j *Judge) Hear(a Answer, now time.Time) {
	j.Reason = a.Reason
	j.heard++
	j.library, j.question = a.Said == Library, a.Asked
	j.hidden = j.hidden || j.library
	aside := j.library && j.isFull(now)
	if aside {
		j.Reason = noService
	}
	aside = aside || a.IsGood() && j.allWait(now) && j.Process.HoldsThreads()
	alive := a.Said >= Fault && !aside
	// Where endpoints are replaced, one that refuses while idle is busy for nobody: with
	// what its silence tells.
	busy := a.IsBusy() || a.Said == Refused && j.Timeout > 0 || aside
	switch {
	case a.IsGood() && alive:
		j.failures, j.Serving = 0, true
	case a.Said == NotServing:
		j.failures, j.Serving = 0, false
	case busy:
		j.failures = 0
	default:
		if j.failures++; j.failures >= maxFailures && (a.Said != Nothing || j.Timeout == 0) {
			j.Serving = false
		}
	}
	switch {
	case alive:
		j.lived, j.deaf, j.missed, j.suspect, j.closed = now, time.Time{}, 0, time.Time{}, false
		return
	case j.library: // only its silence tells
	case busy && a.Overdue, !busy && a.Said == Nothing:
		j.doubt(a.Asked)
	}
	switch {
	case busy:
		j.missed = 0
	case a.Said == Nothing:
		j.missed++
	}
	if j.deaf.IsZero() {
		j.deaf = a.Asked
	}
}

// doubt makes the endpoint suspect since an instant.
func (j *Judge) doubt(since time.Time) {
	if j.suspect.IsZero() {
		j.suspect = since
	}
}

// isFull reports whether an answer of the library's says nothing: each slot has a call that
// the endpoint owes an answer to, or had until a moment ago, and each holds a thread. One
// that was closed for that has no calls, and only what they do tells how it is.
func (j *Judge) isFull(now time.Time) bool {
	s := &j.silence
	w := &s.work
	called := w.Owing > 0 || now.Sub(w.Left) < max(s.limit*urgentAt/8, 2*time.Second)
	return j.closed || j.Timeout > 0 && j.Process != nil && w.Slots > 0 && called &&
		w.Owing+w.GivenUp >= w.Slots && j.Process.Threads() >= w.Slots+ownThreads
}

// allWait reports whether an answer of a spare thread's says nothing: each slot has a call
// that has waited for its answer for long. What was given up may have ended; when it holds
// the spare threads, too, the question is refused.
func (j *Judge) allWait(now time.Time) bool {
	s := &j.silence
	return j.Timeout > 0 && j.Process != nil && s.work.Slots > 0 && s.work.Owing >= s.work.Slots && now.Sub(s.work.Latest) >= s.limit*urgentAt/8
}

// Look takes in what the calls tell at now, and when the health question was put last.
func (j *Judge) Look(w Work, asked, now time.Time) {
	j.Speak(w.Heard)
	j.turns = w.TurnsAway
	process := j.Process
	if j.Timeout == 0 {
		process = nil // nobody is replaced
	}
	s := silence{work: w, limit: max(j.Timeout, longRuns*w.Longest), left: now.Sub(w.Left)}
	if since := j.owedSince(&s.work); since.IsZero() {
		j.still = stillness{}
	} else {
		s.lasts, s.alone, s.asked = now.Sub(since), now.Sub(w.Latest), asked.After(j.lived)
		j.library = j.library && !asked.After(j.question) // else it may not answer any more, either
		j.still.locked = j.hidden && !j.library
		s.still = j.still.look(s.limit, s.lasts, w.Sent+j.heard, process, now)
	}
	j.silence = s
	j.close(now)
}

// close makes an endpoint suspect that has been silent and still for so long that calls
// would only wait there: all its threads are in use, else it would have said that it serves.
// Where its library speaks for it no answer opens it again, so that it has the whole timeout
// before, and is open again when it computes.
func (j *Judge) close(now time.Time) {
	s, least := &j.silence, j.silence.limit*closedAt/8
	if j.library {
		least = s.limit
	}
	switch {
	case j.Timeout > 0 && s.asked && s.lasts >= least && s.still >= s.limit/8:
		j.closed = j.closed || j.library
		j.doubt(now)
	case j.closed:
		j.closed, j.suspect = false, time.Time{}
	}
}

// owedSince is from when on the endpoint has owed an answer and shown no life, zero if it
// owes none. It owes one to a call that runs there; to one that was given up and may run on
// (R5), until it shows that it has a thread; and if none runs to the question how it is.
func (j *Judge) owedSince(w *Work) time.Time {
	since := w.Owed
	if w.GivenUp > 0 {
		if w.Left.After(j.lived) {
			since = Earlier(since, w.First)
		} else {
			w.GivenUp = 0
		}
	}
	if w.InFlight == 0 {
		since = Earlier(since, j.deaf)
	}
	if since.IsZero() {
		return since
	}
	return Later(since, Later(w.Heard, j.lived))
}

// Speak ends a suspicion if an answer came since it began; heard is when the last one
// came.
func (j *Judge) Speak(heard time.Time) {
	if j.IsSilent() && heard.After(j.suspect) {
		j.suspect, j.closed, j.missed, j.failures = time.Time{}, false, 0, 0
	}
}

// Excuse says that nobody could tell until now how the endpoint is: it was stopped, or who
// looks at it was. Its silence begins anew.
func (j *Judge) Excuse(now time.Time) {
	j.lived, j.deaf, j.missed, j.closed = now, time.Time{}, 0, false
	j.still, j.silence = stillness{}, silence{}
}

// IsSilent reports whether the endpoint is suspect for its silence, and gets no new calls.
func (j *Judge) IsSilent() bool { return !j.suspect.IsZero() }

// TurnsAway reports whether the endpoint turns calls away, and gets one only now and then.
func (j *Judge) TurnsAway() bool { return j.turns }

// IsUrgent reports whether the endpoint has been silent for so long that it is to be asked
// every second.
func (j *Judge) IsUrgent() bool {
	return j.Timeout > 0 && j.silence.limit > 0 && j.silence.lasts >= j.silence.limit*urgentAt/8
}

// Verdict is what follows from all the evidence until the last look. An endpoint hangs if
// it owes an answer, to calls that run or to those that were given up, and for Timeout or,
// if that is longer, three times the longest run seen, it has shown no life, used no CPU,
// and had no new call. Idle it hangs if it has missed three questions and nothing is left
// of calls that were given up: a thread that works for nobody is no sickness.
func (j *Judge) Verdict() Verdict {
	s := &j.silence
	owes := s.asked && min(s.lasts, s.still, s.alone) >= s.limit
	deaf := s.work.InFlight == 0 && j.missed >= maxFailures && s.left >= s.limit
	switch {
	case j.Timeout > 0 && s.limit > 0 && (owes || deaf):
		return Hung
	case j.IsSilent(), j.turns:
		return Suspect
	default:
		return OK
	}
}

// Why is the reason of a verdict.
func (j *Judge) Why() string {
	if j.turns && !j.IsSilent() {
		return TurnsAway
	}
	return j.Reason
}

// Told is what the log tells of a silent endpoint: how many calls it has not answered, how
// many of its calls were given up, for how long it has been silent, and of which method a
// call was.
func (j *Judge) Told() []any {
	s := &j.silence
	told := []any{"calls", s.work.Owing, "given_up", s.work.GivenUp, "silent", s.lasts.Round(time.Millisecond).String()}
	if s.work.Method != "" {
		told = append(told, "method", s.work.Method)
	}
	return told
}

// ToldHung is Told of one that hangs.
func (j *Judge) ToldHung() []any {
	s := &j.silence
	return append(j.Told(), "still", s.still.Round(time.Millisecond).String(), "checks_missed", j.missed,
		"limit", s.limit.String(), "reason", j.Reason)
}
