package stats

import (
	"fmt"
	"math"
	"slices"
)

// Pair is one figure, such as the p99 in seconds, of the two blocks that make
// a pair. Only the ratio Other/Base is used, so any unit will do.
//
// Shape: each figure is a number from 0 up, infinity if no call was answered, or Unknown().
type Pair struct {
	// Base is the arm that is compared with, Other the one of which something
	// is said: "p99 lower" means that of Other.
	Base, Other float64
}

// Unknown is the figure of a block that cannot be told, such as the p99 of too
// few calls.
func Unknown() float64 { return math.NaN() }

// check refuses figures that nothing measures.
func (p Pair) check() error {
	for _, figure := range []float64{p.Base, p.Other} {
		if figure < 0 {
			return fmt.Errorf("a figure is %v: must be 0 or more", figure)
		}
	}
	return nil
}

// logRatio returns the logarithm of Other/Base; NaN if it is not known.
//
// Nothing is left out. If one arm did not answer, or its figure is 0, the
// ratio is beyond all numbers, or zero, and its logarithm infinite. Two zeros
// are equal. Of two arms that did not answer nobody knows which is better.
func (p Pair) logRatio() float64 {
	if p.Base == 0 && p.Other == 0 {
		return 0
	}
	return math.Log(p.Other) - math.Log(p.Base) // Inf - Inf is NaN
}

// sample is the log ratios of all pairs.
type sample struct {
	known   []float64 // ascending, maybe infinite
	unknown int       // how many more pairs there are
}

func sampleOf(pairs []Pair) sample {
	var s sample
	for _, p := range pairs {
		if r := p.logRatio(); math.IsNaN(r) {
			s.unknown++
		} else {
			s.known = append(s.known, r)
		}
	}
	slices.Sort(s.known)
	return s
}

// finite is true if every pair has a log ratio that is a number.
func (s sample) finite() bool {
	n := len(s.known)
	return s.unknown == 0 && n > 0 && !math.IsInf(s.known[0], 0) && !math.IsInf(s.known[n-1], 0)
}
