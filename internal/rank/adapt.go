package rank

import (
	"math"
	"time"
)

// How often an adaptive limit is probed.
const (
	// probeEvery is how often the calm run time is measured anew while the limit
	// holds calls back. After a probe that has changed much, and in the
	// beginning, it is probeSoon, doubled by each probe.
	probeEvery = 20 * time.Second
	probeSoon  = 2 * time.Second
	// probePause is how many times the length of a probe passes before the next
	// one: probes cost a sixtieth of the throughput at most. One for a suspicion
	// comes earlier, after alarmPause times the length, doubled by each suspicion
	// that was wrong.
	probePause = 30
	alarmPause = 4
	// probeApart is for how long a measurement can be compared with another: what
	// a probe shows after a spell without calls says nothing of the time before.
	probeApart = 5 * time.Minute
	// refusedFor is how long the limit stays at the number above which the worker has
	// refused calls. One call in some thousands is refused to find out again.
	refusedFor = 10 * time.Second
	// longestSettle bounds the time after a change of the limit in which calls do not
	// count.
	longestSettle = 10 * time.Second
)

// adaptive finds how many calls an endpoint should have in flight if its worker
// takes any number of them: enough to keep the worker busy, and not so many that the
// calls wait for each other there, where no other endpoint can take them.
//
// The run times of a window of calls are summed up and divided by the mean run times
// of the same methods at all endpoints, so that windows with a different mix of
// methods can be compared. This ratio, against the ratio in calm, tells how many of
// the calls in flight waited inside the worker (measure.waiting). While the limit is
// in use it grows if fewer calls wait than the allowance, and shrinks by one if half
// as many more do.
//
// The calm ratio may change for reasons outside the worker (a database grows slow),
// or may never have been seen (the worker was crowded from the start). So it is
// checked by a probe: when twice the allowance waits, when the limit has changed
// much, and every 20 seconds while the limit holds calls back. A probe lets half the
// calls in flight for one window. If they run faster, they had been waiting for each
// other, and the limit falls in one step to a number that leaves few waiting; if
// not, the cause lies outside the limit, and the new run time is the calm one. A
// worker with little to do shows its calm run time without a probe.
//
// Units: ratios are relative to a method's mean run time.
// Concurrency: belongs to the rank's lock. Allocates nothing.
// Source: Brakmo, O'Malley and Peterson, TCP Vegas (SIGCOMM 1994), for the
// number of waiting calls and for steps of one; the gradient2 limit of Netflix'
// concurrency-limits for the square root and for growing only in use; the
// gradient controller of Envoy's adaptive concurrency filter for measuring calm
// at a lower limit. New here: the half as a test of what slowness comes from.
type adaptive struct {
	// Read for every call.
	allowed int           // calls in flight now: limit, or half of it in a probe
	look    int           // number of calls in the window at which to look at it
	settled time.Duration // from when on calls count for the present limit
	full    time.Duration // when as many calls as allowed were last in flight; 0: never
	calm    float64       // ratio without calls that wait; 0 if not known
	window  sample

	limit              int
	least, start, most int // lower bound, first value, upper bound
	why                adaptReason

	taken   int           // the limit after the last refusal
	takenTo time.Duration // until when the limit is not raised above taken

	probing  bool
	doubted  bool          // the last probe found so much less that the next one looks further down
	trusted  int           // limit after the last probe
	probes   int           // probes so far; spreads those of several endpoints
	before   measure       // the window with which the running probe is compared
	unused   time.Duration // when calls last did not need the limit
	probed   time.Duration // end of the last probe, or of a calm window without one
	length   time.Duration // of the last probe
	alarm    time.Duration // from its end until a suspicion may start the next
	patience time.Duration // from its end until the next one starts by itself
}

// adaptReason is why an adaptive limit is what it is.
type adaptReason uint8

const (
	adaptStarting adaptReason = iota // nothing was measured yet
	adaptUnused                      // calls do not need all of it
	adaptGrowing                     // few calls waited inside the worker
	adaptHolding                     // as many waited there as may
	adaptProbing                     // half of it, to see the calm run time
	adaptShrunk                      // fewer calls were as fast in all
	adaptRefused                     // the worker has refused more
	adaptGreatest                    // the limit is at its upper bound
)

// String returns the reason as a metrics label: lower case, underscores.
func (r adaptReason) String() string {
	return [...]string{
		adaptStarting: "starting",
		adaptUnused:   "unused",
		adaptGrowing:  "growing",
		adaptHolding:  "holding",
		adaptProbing:  "probing",
		adaptShrunk:   "shrunk",
		adaptRefused:  "refused",
		adaptGreatest: "greatest",
	}[r]
}

// newAdaptive returns a limit that begins at start and stays between least and
// most; 1 <= least <= start <= most. Limits with a different number of probes probe
// at different times.
func newAdaptive(least, start, most, probes int) adaptive {
	return adaptive{
		allowed: start, look: fewestCalls, limit: start,
		least: least, start: start, most: most, probes: probes,
	}
}

// started notes that a call has begun; inFlight counts it.
func (a *adaptive) started(inFlight int, now time.Duration) {
	if inFlight >= a.allowed {
		a.full = now
	}
}

// finished notes a call that has ended other than by a refusal.
//
// expected is the mean run time of its method over all endpoints, 0 if that is
// not known: then the call tells nothing. inFlight counts the calls in flight
// before this one ended.
func (a *adaptive) finished(run, expected time.Duration, inFlight int, o Outcome, now time.Duration) {
	if now < a.settled || expected <= 0 || o == Failed || o == NotSent || o == Cancelled && run < expected {
		// A call that broke or was cancelled early tells nothing. A call that was
		// cancelled late counts: else deadlines would hide how slow the worker is.
		return
	}
	// Answers may come in batches, so the calls in flight at the end tell little:
	// what counts is whether the limit was reached while this call ran.
	busy := a.full >= now-run && a.full > 0 || inFlight >= a.allowed
	if busy {
		inFlight = a.allowed
	}
	a.window.add(run, expected, a.calm, inFlight, busy, now)
	if a.window.calls >= a.look {
		a.judge(now)
	}
}

// refused notes that the worker refused a call while it had others in flight.
func (a *adaptive) refused(others int, now time.Duration) {
	if now < a.settled || others >= a.allowed {
		return // the call was sent under an earlier limit
	}
	// To half at most: a connection that breaks counts as one refusal after the
	// other, with fewer calls in flight each time.
	a.limit = max(others, a.limit/2, a.least)
	a.taken, a.takenTo = a.limit, now+refusedFor
	a.probing, a.why = false, adaptRefused
	a.begin(a.limit, max(a.window.meanRun(), shortestWindow), now)
}

// judge ends the window if it tells enough.
func (a *adaptive) judge(now time.Duration) {
	wish := certain
	if a.probing {
		wish = certainProbe
	}
	if !a.window.enough(wish, now) {
		a.look += fewestCalls
		return
	}
	m := a.window.measure(now)
	switch {
	case a.probing:
		a.compare(m)
	case !m.busy:
		a.watch(m)
	case a.limit > a.least && a.doubtful(m):
		a.probe(m)
	default:
		a.adjust(m)
	}
}

// watch learns from a window in which the limit made no difference.
func (a *adaptive) watch(m measure) {
	if a.limit == a.least || m.inFlight <= float64(a.limit)/2 {
		a.learn(m)
		a.probed, a.alarm, a.trusted = m.at, 0, a.limit
	}
	a.why, a.unused = adaptUnused, m.at
	a.begin(a.limit, 0, m.at)
}

// doubtful reports whether it is time for a probe.
func (a *adaptive) doubtful(m measure) bool {
	if a.calm == 0 {
		return false // the first window counts as calm until the first probe
	}
	since, waiting, allowed := m.at-a.probed, m.waiting(a.calm), allowance(a.limit)
	crowded := waiting > min(2*allowed, m.inFlight/2) && m.surelyAbove(a.calm, m.err)
	held := waiting > allowed/2 || a.limit == a.most
	return a.doubted || a.limit > 2*a.trusted ||
		since >= a.alarm && (crowded || waiting > 1.5*allowed && 10*a.limit < 8*a.trusted) ||
		m.at-max(a.probed, a.unused) >= a.patience+a.spread() && held
}

// spread keeps endpoints from probing at the same time.
func (a *adaptive) spread() time.Duration { return a.patience / 32 * time.Duration(a.probes*7%16) }

// adjust moves the limit after a window that needed all of it.
func (a *adaptive) adjust(m measure) {
	switch {
	case a.calm == 0:
		a.learn(m)
		a.probed, a.patience, a.trusted = m.at, probeSoon, a.limit
	case a.limit == a.least:
		a.learn(m) // no lower limit can be compared with this one
	case m.ratio < a.calm:
		a.calm += (m.ratio - a.calm) / 4
	}
	waiting, allowed := m.waiting(a.calm), allowance(a.limit)
	switch {
	case waiting < allowed:
		a.grow(waiting, allowed, m)
		return
	case waiting > 1.5*allowed:
		a.limit = max(a.limit-1, a.least)
	}
	a.why = adaptHolding
	a.begin(a.limit, 0, m.at)
}

// allowance is how many of the calls in flight may wait inside the worker: about as
// many as keep its processor busy through the ups and downs of chance, and clearly
// fewer than the half that waits at a limit twice too high.
func allowance(inFlight int) float64 {
	n := float64(inFlight)
	return min(1.5*math.Sqrt(n)-0.75, 0.4*n)
}

// grow raises the limit by the number of calls that may still wait, and faster while
// hardly any waits.
func (a *adaptive) grow(waiting, allowed float64, m measure) {
	step := max(allowed-waiting, 1)
	if waiting < allowed/4 {
		step = max(step, float64(a.limit)/4)
	}
	most, why := a.most, adaptGreatest
	if m.at < a.takenTo {
		most, why = min(most, max(a.taken, a.limit)), adaptRefused
	}
	a.limit = min(a.limit+int(step), most)
	a.why = adaptGrowing
	if a.limit == most {
		a.why = why
	}
	a.begin(a.limit, m.meanRun, m.at)
}

// probe lets half the calls in flight for a window.
func (a *adaptive) probe(m measure) {
	a.probing, a.doubted, a.before = true, false, m
	a.probes++
	a.why = adaptProbing
	// Twice the run time: calls that began before must not be part of the probe.
	a.begin(max(a.limit/2, a.least), 2*m.meanRun, m.at)
}

// compare ends a probe. m is its window, a.before the window that led to it.
func (a *adaptive) compare(m measure) {
	before := a.before
	a.probing, a.probed = false, m.at
	a.length = settleTime(2*before.meanRun) + m.took
	a.alarm = min(max(2*a.alarm, alarmPause*a.length), max(probePause*a.length, probeEvery))
	a.patience = max(min(2*a.patience, probeEvery), probePause*a.length)
	confirmed := a.learn(m)
	a.why = adaptHolding
	waited := before.waiting(a.calm)
	if waited > allowance(a.limit) && before.surelyAbove(a.calm, m.err) && m.at-before.at < probeApart {
		a.shrink(before.inFlight-waited, confirmed, m)
	}
	a.trusted = a.limit
	a.begin(a.limit, m.meanRun, m.at)
}

// shrink lowers the limit after a probe. enough is how many calls in flight do not
// wait by the calm ratio; confirmed says that this ratio was the same before.
func (a *adaptive) shrink(enough float64, confirmed bool, m measure) {
	// If half the calls have about the same throughput they may be waiting for each
	// other too: then the ratio taken for calm is not calm.
	a.doubted = !confirmed && enough < m.inFlight+0.1*a.before.inFlight
	if !a.doubted {
		enough += allowance(int(enough))
	}
	if enough < 0.75*a.before.inFlight {
		a.alarm = alarmPause * a.length // it was right
	}
	if enough < 0.9*a.before.inFlight {
		a.patience = max(probeSoon, probePause*a.length)
	}
	a.limit = min(max(int(math.Round(enough)), a.allowed), a.limit)
	a.why = adaptShrunk
}

// learn takes over the ratio of a window in which no call waited: by half if the
// difference may be chance. It reports whether it may.
func (a *adaptive) learn(m measure) (confirmed bool) {
	if a.calm != 0 && math.Abs(m.ratio-a.calm) < 2*m.err {
		a.calm += (m.ratio - a.calm) / 2
		return true
	}
	a.calm = m.ratio
	return false
}

func settleTime(wish time.Duration) time.Duration { return min(wish, longestSettle) }

// begin starts a window with allowed calls in flight. Calls count after settle, when
// most earlier calls have ended.
func (a *adaptive) begin(allowed int, settle, now time.Duration) {
	a.allowed = allowed
	a.settled = now + settleTime(settle)
	a.window = sample{}
	a.look = fewestCalls
}
