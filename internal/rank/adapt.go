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
	// refusedFor is how long a limit that the worker has refused more than stays the
	// largest. One call in some thousands is refused to find out again.
	refusedFor = 10 * time.Second
	// longestSettle bounds how long after a change of the limit calls do not
	// count yet.
	longestSettle = 10 * time.Second
)

// adaptive finds how many calls an endpoint should have in flight if its worker
// takes any number of them: enough to keep it busy, and not so many that they
// wait for each other there, where no other endpoint can take them.
//
// The run times of a window of calls are summed up and divided by what these
// calls take on average at all endpoints: thus windows with a different mix of
// methods compare. That ratio against the ratio in calm tells how many of the
// calls in flight waited inside the worker (measure.waiting). While the limit is
// in use it grows if they are fewer than the allowance, and shrinks by one if
// they are more than half as many again.
//
// What calm is may change for reasons outside the worker (a database grows
// slow), or may never have been seen (the worker was crowded from the start). So
// it is doubted: when twice the allowance waits, when the limit has changed
// much, and every 20 seconds while it holds calls back, a probe lets half the calls
// in flight for one window. If they run faster by that they had been waiting for
// each other, and the limit falls to what leaves few waiting, in one step; if
// not, the reason is none of the limit's business, and the new run time is the
// calm one. A worker with little to do shows its calm run time without a probe.
//
// Units: ratios are relative to a method's mean run time.
// Concurrency: belongs to the rank's lock. Allocates nothing.
// Source: Brakmo, O'Malley and Peterson, TCP Vegas (SIGCOMM 1994), for the
// number of waiting calls and for steps of one; the gradient2 limit of Netflix'
// concurrency-limits for the square root and for growing only in use; the
// gradient controller of Envoy's adaptive concurrency filter for measuring calm
// at a lower limit. New here: the half as a test of what slowness comes from.
type adaptive struct {
	// What every call needs.
	allowed int           // calls in flight now: limit, or half of it in a probe
	look    int           // number of calls in the window at which to look at it
	settled time.Duration // from when on calls belong to what is allowed
	full    time.Duration // when what is allowed was last in flight; 0 never
	calm    float64       // ratio without calls that wait; 0 if not known
	window  sample

	limit              int
	least, start, most int // its bounds, and where it began
	why                adaptReason

	taken   int           // the limit that a refusal has led to
	takenTo time.Duration // until when it is not raised above that

	probing  bool
	doubted  bool          // the last probe has found so much less: look further down
	trusted  int           // limit after the last probe
	turn     int           // probes so far; spreads those of several endpoints
	before   measure       // what the probe that runs is compared with
	unused   time.Duration // when calls last did not need the limit
	probed   time.Duration // end of the last probe, or of calm seen without one
	length   time.Duration // of the last probe, without spells without calls
	alarm    time.Duration // after it, before a suspicion may lead to the next
	patience time.Duration // after it, before the next one comes by itself
}

// adaptReason is why an adaptive limit is what it is.
type adaptReason uint8

const (
	adaptStarting adaptReason = iota // nothing was measured yet
	adaptUnused                      // calls do not need all of it
	adaptGrowing                     // few calls waited inside the worker
	adaptHolding                     // as many waited there as should
	adaptProbing                     // half of it, to see the calm run time
	adaptShrunk                      // fewer calls were as fast in all
	adaptRefused                     // the worker has refused more
	adaptGreatest                    // it is at its upper bound
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
// most; 1 <= least <= start <= most. Those with a different turn probe at
// different times.
func newAdaptive(least, start, most, turn int) adaptive {
	return adaptive{
		allowed: start, look: fewestCalls, limit: start,
		least: least, start: start, most: most, turn: turn,
	}
}

// started takes in that a call has begun; inFlight counts it.
func (a *adaptive) started(inFlight int, now time.Duration) {
	if inFlight >= a.allowed {
		a.full = now
	}
}

// finished takes in a call that has ended other than by a refusal.
//
// expected is the mean run time of its method over all endpoints, 0 if that is
// not known: then the call tells nothing. inFlight are the calls in flight
// before this one ended.
func (a *adaptive) finished(run, expected time.Duration, inFlight int, o Outcome, now time.Duration) {
	if now < a.settled || expected <= 0 || o == Failed || o == NotSent || o == Cancelled && run < expected {
		// What broke or was cancelled early tells nothing. What was cancelled
		// late counts, lest the deadlines of callers hide how slow it is here.
		return
	}
	// Answers may come in batches, so that the calls in flight at the end tell
	// little: what counts is whether the limit was reached while this one ran.
	busy := a.full >= now-run && a.full > 0 || inFlight >= a.allowed
	if busy {
		inFlight = a.allowed
	}
	a.window.add(run, expected, a.calm, inFlight, busy, now)
	if a.window.calls >= a.look {
		a.judge(now)
	}
}

// refused takes in that the worker refused a call while it had so many others
// in flight.
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
func (a *adaptive) spread() time.Duration { return a.patience / 32 * time.Duration(a.turn*7%16) }

// adjust moves the limit by what waited in a window that needed all of it.
func (a *adaptive) adjust(m measure) {
	switch {
	case a.calm == 0:
		a.learn(m)
		a.probed, a.patience, a.trusted = m.at, probeSoon, a.limit
	case a.limit == a.least:
		a.learn(m) // there is nothing below to compare with
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

// allowance is how many of so many calls in flight may wait inside the worker:
// about as many as keep its processor busy through the ups and downs of chance,
// and clearly fewer than the half that waits at a limit twice too high.
func allowance(inFlight int) float64 {
	n := float64(inFlight)
	return min(1.5*math.Sqrt(n)-0.75, 0.4*n)
}

// grow raises the limit by what may still wait, and faster while nobody does.
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
	a.turn++
	a.why = adaptProbing
	// Twice the run time: the calls that began before must not be part of it.
	a.begin(max(a.limit/2, a.least), 2*m.meanRun, m.at)
}

// compare ends a probe. m is what it has measured, a.before the window that led
// to it.
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

// shrink lowers the limit after a probe. enough is how many calls in flight do
// not wait, if calm is what it seems to be, and confirmed that it was so before.
func (a *adaptive) shrink(enough float64, confirmed bool, m measure) {
	// If half the calls are about as fast in all they may wait for each other
	// just as well: then what was taken for calm is not.
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

// learn takes over the ratio of a window in which nobody waited: by half if the
// difference may be chance. It reports whether that is so.
func (a *adaptive) learn(m measure) (confirmed bool) {
	if a.calm != 0 && math.Abs(m.ratio-a.calm) < 2*m.err {
		a.calm += (m.ratio - a.calm) / 2
		return true
	}
	a.calm = m.ratio
	return false
}

func settleTime(wish time.Duration) time.Duration { return min(wish, longestSettle) }

// begin starts a window with so many calls allowed in flight. Calls count after
// settle, when most of those that began earlier have ended.
func (a *adaptive) begin(allowed int, settle, now time.Duration) {
	a.allowed = allowed
	a.settled = now + settleTime(settle)
	a.window = sample{}
	a.look = fewestCalls
}
