package rank

import (
	"slices"
	"time"
)

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
