// Package stats says what a number of runs allow to say about two arms: is one
// better, by how much, are they about equal, or was there too little to tell.
//
// The unit is the block: one run of one arm, which gives one figure, such as its p99. The calls
// inside a run are not independent, they shared a queue and a minute of the machine; a million of
// them is still one run. Two blocks, one of each arm, make a pair: they had the same arrivals and
// ran close together, in random order (Plan). What counts is the ratio of the two figures.
//
//   - Judge takes the pairs of figures: of a primary one, which decides, and of
//     others, which are corrected for their number (Holm).
//   - The interval is Student's t on the logarithms of the ratios. Where a
//     figure is infinite or unknown it is made of order statistics.
//   - With fewer than MinPairs pairs there is no verdict.
//   - "About equal" is a claim of its own, with a margin that was stated
//     before (two one-sided tests), and not the absence of a difference.
//
// How often all this is wrong is measured, in the tests with known truth
// (calibration_test.go); docs/lab-method.md has the results.
//
// The package draws no conclusion about calls, knows no histogram, and reads no clock.
package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// MinPairs is how many pairs with a known ratio a verdict takes. With fewer, the interval
	// depends on the noise being normal, which nobody can check on so few.
	MinPairs = 10
	// Alpha is the error that is allowed: of the primary figure; of all
	// secondary ones together; and each of the claims "differs" and "about
	// equal" by itself. A figure can be wrong in one of the two only: if the
	// arms are equal, "differs" is wrong, and if they differ, "about equal".
	Alpha = 0.05
)

// Figure is one thing that was measured in every block of two arms.
type Figure struct {
	Name string // what it is called: "p99"
	// Pairs has the figures of all pairs, in any order. None may be left out:
	// a block without a figure is infinite or Unknown.
	Pairs []Pair
	// Margin is the change that would not matter, as a share: 0.05 is 5 %.
	// It has to be stated before measuring. 0 asks for no claim of equality.
	Margin float64
}

func (f Figure) check() error {
	if !(f.Margin >= 0 && f.Margin < 1) {
		return fmt.Errorf("%s: the margin is %v: must be from 0 to 1", f.Name, f.Margin)
	}
	for i, p := range f.Pairs {
		if err := p.check(); err != nil {
			return fmt.Errorf("%s: pair %d: %w", f.Name, i+1, err)
		}
	}
	return nil
}

// Verdict is what may be said of a figure.
type Verdict string

// The verdicts. Lower and Higher speak of the arm Other.
const (
	TooFewPairs  Verdict = "too few pairs"
	NoDifference Verdict = "no difference shown"
	AboutEqual   Verdict = "about equal"
	Lower        Verdict = "lower"
	Higher       Verdict = "higher"
)

// Comparison is what the pairs say of one figure.
type Comparison struct {
	Figure string `json:"figure"` // its name
	// Verdict is the conclusion. A difference that is shown, and shown to be
	// smaller than the margin, is AboutEqual.
	Verdict    Verdict  `json:"verdict"`
	Ratio      Interval `json:"ratio"`            // Other over Base; without a verdict the whole range
	Confidence float64  `json:"confidence"`       // that of the interval: 0.95, and more for a figure of many
	Method     Method   `json:"method,omitempty"` // empty with too few pairs
	// P is the p-value of "no difference", PEqual that of "differs by the margin or more"; both
	// are corrected for the number of figures, and 1 if the claim was not tested.
	P      float64 `json:"p"`
	PEqual float64 `json:"p_equal"`
	Margin float64 `json:"margin"`
	Pairs  int     `json:"pairs"`
	Known  int     `json:"known"` // pairs that have a ratio
	// BaseSilent and OtherSilent are in how many blocks of each arm no call was answered.
	BaseSilent  int `json:"base_silent"`
	OtherSilent int `json:"other_silent"`
}

// Judge compares two arms. The first figure was chosen before measuring and is tested by
// itself if it is the primary one. All others are a family: their errors are corrected for
// how many were asked for, those with too few pairs included.
//
// Errors: one line that names the figure and the pair, for a negative figure
// and for a margin that is no share.
func Judge(primary bool, figures ...Figure) ([]Comparison, error) {
	first := 0
	if primary {
		first = 1
	}
	alone, err := family(figures[:first]...)
	if err != nil {
		return nil, err
	}
	others, err := family(figures[first:]...)
	return append(alone, others...), err
}

// family compares figures that share the error Alpha.
func family(figures ...Figure) ([]Comparison, error) {
	comparisons := make([]Comparison, len(figures))
	centers := make([]center, len(figures))
	differs, equal := make([]float64, len(figures)), make([]float64, len(figures))
	for i, f := range figures {
		if err := f.check(); err != nil {
			return nil, err
		}
		comparisons[i], centers[i] = begin(f)
		differs[i], equal[i] = tests(centers[i], f.Margin)
	}
	differ, same := holm(differs, Alpha), holm(equal, Alpha)
	for i := range comparisons {
		if centers[i] != nil {
			comparisons[i].conclude(centers[i], differ[i], same[i])
		}
	}
	return comparisons, nil
}

// begin counts what there is, and has no center if that is too little.
func begin(f Figure) (Comparison, center) {
	s := sampleOf(f.Pairs)
	c := Comparison{
		Figure: f.Name, Margin: f.Margin, Pairs: len(f.Pairs), Known: len(s.known),
		Verdict: TooFewPairs, Ratio: Interval{Low: 0, High: math.Inf(1)}, P: 1, PEqual: 1,
	}
	for _, p := range f.Pairs {
		if math.IsInf(p.Base, 1) {
			c.BaseSilent++
		}
		if math.IsInf(p.Other, 1) {
			c.OtherSilent++
		}
	}
	if c.Known < MinPairs {
		return c, nil
	}
	return c, centerOf(s)
}

// tests returns the p-values of both claims, 1 for one that is not made.
func tests(c center, margin float64) (differs, equal float64) {
	if c == nil {
		return 1, 1
	}
	differs, equal = difference(c), 1
	if margin > 0 {
		equal = equivalence(c, math.Log1p(margin))
	}
	return differs, equal
}

// conclude draws the verdict from the corrected p-values.
func (c *Comparison) conclude(from center, differ, same decision) {
	low, high := from.interval(1 - differ.level)
	c.Ratio = Interval{Low: math.Exp(low), High: math.Exp(high)}
	if middle := math.Exp(from.estimate()); !math.IsNaN(middle) && !math.IsInf(middle, 0) {
		c.Ratio.Middle = &middle
	}
	c.Confidence, c.Method = 1-differ.level, from.method()
	c.P, c.PEqual = differ.adjusted, same.adjusted
	switch {
	case c.PEqual <= Alpha:
		c.Verdict = AboutEqual
	case c.P > Alpha:
		c.Verdict = NoDifference
	case c.Ratio.High < 1:
		c.Verdict = Lower
	case c.Ratio.Low > 1:
		c.Verdict = Higher
	default: // p and interval agree but for rounding
		c.Verdict = NoDifference
	}
}

// decision is what the correction for many figures makes of one p-value.
type decision struct {
	adjusted float64 // the p-value to compare with the error of the whole family
	// level is the error that the figure was tested with in its step. An
	// interval with this error leaves out zero exactly if the figure is shown.
	level float64
}

// holm corrects the p-values of a family of m figures so that the chance to show any that is not
// there is at most alpha, however they depend on each other. The smallest p-value is compared
// with alpha/m, the next one with alpha/(m-1), and so on; at the first that is too large it ends,
// and that one and all after it are not shown.
//
// Source: Holm, "A simple sequentially rejective multiple test procedure",
// Scandinavian Journal of Statistics 6 (1979).
func holm(p []float64, alpha float64) []decision {
	places := make([]int, len(p))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(p[a], p[b]) })

	decisions := make([]decision, len(p))
	least, stopped := 0.0, 0.0
	for step, i := range places {
		left := float64(len(p) - step)
		least = max(least, min(1, left*p[i]))
		if stopped == 0 && least > alpha {
			stopped = alpha / left
		}
		decisions[i] = decision{adjusted: least, level: alpha / left}
		if stopped > 0 {
			decisions[i].level = stopped
		}
	}
	return decisions
}

// Pair is one figure, such as the p99 in seconds, of the two blocks that make
// a pair. Only the ratio Other/Base is used, so any unit will do.
//
// Shape: each figure is a number from 0 up, infinity if no call was answered, or Unknown().
type Pair struct {
	// Base is the arm that is compared with, Other the one of which something
	// is said: "p99 lower" means that of Other.
	Base, Other float64
}

// Unknown is the figure of a block that cannot be told, such as the p99 of too few calls.
func Unknown() float64 { return math.NaN() }

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

// Round is one pair of blocks, or one block of each of several arms: all with
// the same seed, one after the other.
type Round struct {
	// Seed is for the arrivals and service times. All arms of the round use
	// the same, so that none has the luck of easier calls. It is below 2^53:
	// readers of JSON that know floating point alone keep it.
	Seed  uint64
	Order []int // the arms, by number, as they run
}

// Plan lays out an experiment of so many rounds with so many arms. In every round the arms run in
// a random order, drawn for each round anew: what changes with time (a machine that gets warm, a
// neighbor) falls on all arms alike, and whoever runs second has no advantage. This is a
// randomized complete block design.
//
// The same seed gives the same plan, today and with the next Go.
//
// Source: Fisher, "The Design of Experiments" (1935), chapter 4.
func Plan(seed uint64, rounds, arms int) []Round {
	source := rand.NewPCG(seed, 0)
	random := rand.New(source)
	plan := make([]Round, rounds)
	for i := range plan {
		plan[i] = Round{Seed: source.Uint64() >> 11, Order: random.Perm(arms)}
	}
	return plan
}
