package rank

import (
	"math"
	"slices"
	"time"
)

// pace is how fast an endpoint answers, compared with what is usual for the methods
// of its calls: the mean logarithm of a run time over the median of its method, so that
// neither the mix of methods nor single long calls matter.
//
// Units: a quarter of an octave, as in runTimes, times paceUnit.
type pace struct {
	mean       int           // smoothed
	count      int           // runs behind mean, at most paceRuns
	long       int           // smoothed over more runs, for decisions that must be sure
	runs       int           // runs behind long, at most longRuns
	last       time.Duration // when the last run ended
	leasesThen uint64        // Rank.leases at the last run

	slow    bool // others are preferred
	octaves int  // how much slower than usual, if that is much
}

const (
	paceUnit = 256
	// paceRuns is how many runs the mean is taken over. The logarithms of exponential
	// run times vary by 1.3 octaves or so, their mean over 16 by a third of one.
	paceRuns = 16
	// longRuns is the same for the mean that takes slots away. By chance, a mean over 64
	// differs by two octaves in not one of many millions of calls.
	longRuns = 64
	// paceFault is the run time of a failure: 16 times as long as usual.
	paceFault = 4 * 4 * paceUnit
	// slowBy is how much slower than usual an endpoint must be to count as slow: twice,
	// which is three times the difference that chance makes between equal ones.
	slowBy = 4 * paceUnit
	// paceMost bounds a single run: 64 times as fast or slow as usual.
	paceMost = 6 * 4 * paceUnit
)

// ratio returns how long calls take, compared with what is usual.
func (p *pace) ratio() float64 { return math.Exp2(float64(p.mean) / (4 * paceUnit)) }

// ran notes a run that ended well.
func (p *pace) ran(m *Method, run, now time.Duration) {
	if !m.known() {
		return
	}
	quarters := bucketOf(run) - bucketOf(time.Duration(m.median.Load()))
	p.add(min(max(quarters*paceUnit, -paceMost), paceMost), now)
}

func (p *pace) add(sample int, now time.Duration) {
	if now-p.last >= probeAfter {
		p.count = min(p.count, 2) // the other runs were long ago
	}
	p.last = now
	p.count = min(p.count+1, paceRuns)
	p.mean += (sample - p.mean) / p.count
	p.runs = min(p.runs+1, longRuns)
	p.long += (sample - p.long) / p.runs
}

// learnPace learns an endpoint's pace from the end of a lease.
func (r *Rank) learnPace(e *Endpoint, o Outcome, m *Method, run, now time.Duration) {
	switch o {
	case OK:
		e.pace.ran(m, run, now)
	case Failed, Faulty:
		e.pace.add(paceFault, now)
	case RefusedByWorker, MaybeRefused, Lost, NotSent:
		return // tells about its threads, not about its pace
	case Cancelled:
		if run <= time.Duration(m.median.Load()) {
			return // it might have been quick
		}
		e.pace.ran(m, run, now)
	}
	e.pace.leasesThen = r.leases
	r.compare()
}

const (
	// compareAfter is how many runs an endpoint needs to be compared, and sureAfter how
	// many to lose slots.
	compareAfter = 8
	sureAfter    = 24
	// After probeAfter and probeRarely calls elsewhere a slow endpoint is given a single
	// call, to learn whether it is still slow. probeRarely keeps these probes out of the
	// slowest thousandth of all calls.
	probeAfter  = 5 * time.Second
	probeRarely = 2000
	// shrinkBy is how much slower than usual an endpoint must be to lose slots: four
	// times. The slots of a faster one are worth having.
	shrinkBy = 2 * slowBy
)

// compare finds the slow endpoints, compared with the median. It does so once in a
// number of calls.
func (r *Rank) compare() {
	if r.compareIn--; r.compareIn > 0 {
		return
	}
	r.compareIn = max(4*compareAfter, compareAfter*len(r.up))
	r.paces = r.paces[:0]
	for _, e := range r.up {
		if e.pace.count >= compareAfter {
			r.paces = append(r.paces, e.pace.mean)
		}
	}
	if len(r.paces) == 0 {
		return
	}
	slices.Sort(r.paces)
	usual := r.paces[(len(r.paces)-1)/2]
	r.slow, r.verySlow = 0, 0
	for _, e := range r.up {
		e.pace.compare(usual)
		if e.pace.slow {
			r.slow++
		}
		if e.pace.octaves > 0 {
			r.verySlow++
		}
		if e.relimit() {
			r.refresh(e)
		}
	}
}

// compare decides whether the endpoint is slow, compared with usual. A slow one stays
// slow until it is well below the bound.
func (p *pace) compare(usual int) {
	behind := p.mean - usual
	if p.count == 0 {
		behind = 0
	}
	by := slowBy
	if p.slow {
		by = slowBy * 3 / 4
	}
	p.slow = behind >= by
	switch sure := p.runs >= sureAfter && p.long-usual >= shrinkBy; {
	case behind >= shrinkBy && sure, p.octaves > 0 && behind >= shrinkBy*3/4:
		p.octaves = max(behind/(4*paceUnit), 1)
	default:
		p.octaves = 0
	}
}

func isSlow(e *Endpoint) bool { return e.pace.slow }

// probe returns a slow one of some endpoints if it is time to try it again, or nil.
func (r *Rank) probe(some []*Endpoint, now time.Duration) *Endpoint {
	if r.slow == 0 {
		return nil
	}
	for _, e := range some {
		if e.pace.slow && e.inFlight == 0 && now-e.pace.last >= probeAfter && r.leases-e.pace.leasesThen >= probeRarely {
			e.pace.leasesThen = r.leases // one at a time
			return e
		}
	}
	return nil
}

// betterToWait reports whether waiting is faster for a call of the method than the free slots,
// all of which are on very slow endpoints: with k slots elsewhere, each call ahead in
// the queue costs 1/k of a run, and a slow slot costs as many more runs as it is slower
// (the slow server problem: a slow server is worth using only while enough calls wait).
//
// It is false when no other endpoint is up, when the call could not wait, or when no
// slot has been handed over for as long as the slow one would take more; the rank asks
// for a Tick at that time.
// Source: Lin and Kumar, "Optimal Control of a Queueing System with Two
// Heterogeneous Servers", IEEE Transactions on Automatic Control 1984.
func (r *Rank) betterToWait(m *Method, now time.Duration) bool {
	if r.verySlow == 0 || slices.ContainsFunc(r.free, isNotVerySlow) {
		return false
	}
	others, more := r.capacity, maxOctaves
	for _, e := range r.up {
		if e.pace.octaves > 0 {
			others -= e.usable
		}
	}
	for _, e := range r.free {
		more = min(more, 1<<e.pace.octaves-1)
	}
	waiting := r.Waiting()
	if others <= 0 || waiting >= r.queueLength || waiting+1 > others*more/relief {
		return false
	}
	began := now
	if waiting > 0 {
		began = r.handovers.last
	}
	until := began + time.Duration(more)*m.expectedRun()
	if now >= until {
		return false
	}
	r.wakeAt(until)
	return true
}

// relief is how many times earlier a slow slot is used than is best for the call that
// gets it, because the calls behind it wait less, too. Simulated with one of five
// workers ten times as slow: 1 costs the median at high load, 8 the slowest thousandth.
const relief = 4

// maxOctaves bounds how many more runs a slow slot is taken to cost.
const maxOctaves = 1 << 10

func isNotVerySlow(e *Endpoint) bool { return e.pace.octaves == 0 }
