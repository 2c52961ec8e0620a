// Package goal says whether a load met what was asked of it, and at which highest
// rate it still does.
//
//  1. Parse reads thresholds such as "p99<100ms"; Thresholds.Judge holds a
//     traffic.Record against them.
//  2. Find makes runs of an open loop at one rate after the other until it knows
//     between which two rates the thresholds cease to hold.
//
// A record in which the generator was the limit is not judged, in either. Package goal
// makes no call itself: whoever searches hands in two functions that do.
package goal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Outcome is how a search ended, as it stands in JSON.
type Outcome string

// The outcomes. Whatever it is, Result.Holds and Result.Fails are what is known.
const (
	Found     Outcome = "found"     // both ends are sure, and as near as was asked
	Generator Outcome = "generator" // it, not the service, ended the search
	First     Outcome = "first"     // the thresholds are missed at the first rate
	Highest   Outcome = "highest"   // they hold at the highest rate that can be asked for
	Broken    Outcome = "broken"    // the service did not recover from a run
	Bounds    Outcome = "bounds"    // the runs or the time were used up
	Cancelled Outcome = "cancelled" // somebody ended the search
)

// Step is one run of a search.
type Step struct {
	Rate float64 `json:"rate"` // calls per second
	Try  int     `json:"try"`  // the runs at this rate, from 1
	// Began is since the start of the search; Rested is how long the service took to
	// recover before it, 0 for the first.
	Began     time.Duration `json:"began_ns"`
	Took      time.Duration `json:"took_ns"`
	Rested    time.Duration `json:"rested_ns"`
	Judgement Judgement     `json:"judgement"`
}

// Result is what a search knows.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Why says in a line what ended the search, for Generator, First, Broken and Bounds.
	Why string `json:"why,omitempty"`
	// Holds is the highest rate that held, below all that did not; 0 if there is none.
	Holds float64 `json:"holds,omitempty"`
	// Fails is the lowest rate that did not, and Limited the lowest at which the
	// generator was the limit; one of them is above Holds, or none, and the other 0.
	Fails   float64  `json:"fails,omitempty"`
	Limited float64  `json:"limited,omitempty"`
	Sure    bool     `json:"confirmed"` // Holds was confirmed by a second run
	Steps   []Step   `json:"steps"`     // all runs, in their order
	Notes   []string `json:"notes,omitempty"`
}

type search struct {
	options Options
	began   time.Time
	before  health // of the service at the start
	after   health // of the service when it had not recovered
	rested  time.Duration
	levels  ladder
	over    bool // nothing is left to find out
	result  Result
}

// Find looks for the highest rate at which all thresholds hold.
//
// It doubles the rate until the thresholds are missed or the generator is the limit,
// and then halves the interval by ratio until its ends are as near as the precision. A
// rate fails when it missed twice and never held; the answer's rate has held twice, and
// the one above it has missed three times (with a held run between them if need be).
// Before each run but the first the service has to answer a probe as it did at the start.
//
// Errors: one line for options that make no sense, for a service that answers no probe
// at the start, and those of Run and Probe. With an error of these two the result
// holds what is known until then. When ctx is cancelled there is no error.
func Find(ctx context.Context, o Options) (Result, error) {
	if err := o.complete(); err != nil {
		return Result{}, err
	}
	s := &search{options: o, began: time.Now()}
	err := s.start(ctx)
	for err == nil {
		var more bool
		if more, err = s.step(ctx); !more {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		s.result.Outcome, err = Cancelled, nil
	case errors.Is(err, errBroken):
		s.broken()
		err = nil
	}
	s.sum()
	return s.result, err
}

func (s *search) start(ctx context.Context) (err error) {
	if s.before, err = s.probe(ctx); err != nil {
		return err
	}
	if s.before.failed >= 1 {
		return errors.New("the service answers no call before the search; nothing was loaded")
	}
	return nil
}

// step makes the next run, or says that there is none.
func (s *search) step(ctx context.Context) (more bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	rate, more := s.levels.next(s.options.First)
	if s.over = !more; s.over || s.bound() {
		return false, nil
	}
	if len(s.result.Steps) > 0 {
		rests := time.Now()
		if err := s.recover(ctx); err != nil {
			return false, err
		}
		if s.rested = time.Since(rests); s.bound() {
			return false, nil
		}
	}
	return true, s.run(ctx, rate)
}

// bound reports whether no other run may begin, and notes why.
func (s *search) bound() bool {
	n, last := len(s.result.Steps), time.Duration(0)
	if n > 0 {
		last = s.result.Steps[n-1].Took
	}
	switch {
	case n >= s.options.mostRuns:
		s.result.Why = fmt.Sprintf("%d runs were made, and no more are allowed", n)
	case time.Since(s.began)+last > s.options.mostTime:
		s.result.Why = fmt.Sprintf("another run would end after the %v that are allowed", s.options.mostTime)
	default:
		return false
	}
	s.result.Outcome = Bounds
	return true
}

func (s *search) run(ctx context.Context, rate float64) error {
	began := time.Now()
	run, err := s.options.Run(ctx, rate)
	if err != nil {
		return err
	}
	if run.Record.Loop != traffic.OpenLoop {
		return errors.New("--find is for open loops: in a closed loop the service sets the rate")
	}
	l := s.levels.at(rate)
	step := Step{
		Rate: rate, Try: l.held + l.missed + l.limited + 1,
		Began: began.Sub(s.began), Took: time.Since(began), Rested: s.rested,
		Judgement: s.options.Thresholds.Judge(run.Record, run.Busy),
	}
	s.result.Steps = append(s.result.Steps, step)
	s.note(run.Record)
	if s.options.Told != nil {
		s.options.Told(step)
	}
	switch {
	case step.Judgement.Cut && ctx.Err() == nil:
		return errors.New("a run was cut short, though nobody has cancelled the search")
	case step.Judgement.Cut:
	case step.Judgement.Generator != "":
		l.limited++
	case step.Judgement.Verdict == Held:
		l.held++
	default:
		l.missed++
	}
	return nil
}

// note adds, with the first run, what a reader should know.
func (s *search) note(r *traffic.Record) {
	if len(s.result.Steps) > 1 || r.Cut {
		return
	}
	if d, by := s.options.needs(); r.Counted < d {
		s.result.Notes = append(s.result.Notes, fmt.Sprintf(
			"runs of %v are short for %s: an overload of %s shows after %v; give a longer --duration",
			r.Counted, by, percent(precision), d))
	}
}

// last returns what the last run at a rate that did not hold has said.
func (s *search) last(rate float64) (why string) {
	for _, step := range s.result.Steps {
		if step.Rate == rate && step.Judgement.Verdict != Held {
			why = step.Judgement.String()
		}
	}
	return why
}

func (s *search) broken() {
	s.result.Outcome = Broken
	last := s.result.Steps[len(s.result.Steps)-1]
	s.result.Why = fmt.Sprintf("%v after the run at %s a few calls one by one had %v; before the search %v",
		mostRest, rateText(last.Rate), s.after, s.before)
}

func (s *search) sum() {
	low, high := s.levels.bracket()
	r, ended := &s.result, Highest
	if low != nil {
		r.Holds, r.Sure = low.rate, low.held >= sureHeld
	}
	switch {
	case high == nil:
	case high.state() == limits:
		r.Limited, ended = high.rate, Generator
	case low == nil:
		r.Fails, ended = high.rate, First
	default:
		r.Fails, ended = high.rate, Found
	}
	if !s.over {
		return
	}
	if r.Outcome = ended; ended == Generator || ended == First {
		r.Why = s.last(high.rate)
	}
}

const (
	precision = 0.05 // how near the two rates of an answer are
	// mostRuns is enough to grow a thousandfold and to narrow down to 5 %, with every rate
	// tried twice: (10 + 4) x 2, and what makes sure.
	mostRuns = 40
	// mostTime is enough for that with runs of 30 s, and pauses between them: no run begins
	// that would end later if it took as long as the one before.
	mostTime = 30 * time.Minute
	mostRest = 30 * time.Second // how long a service may take to recover between two runs
)

// Run is what came of a run; Busy is as Judge takes it.
type Run struct {
	Record *traffic.Record
	Busy   float64
}

// Options are what Find has to know.
type Options struct {
	// Thresholds have to hold. Those that want a figure to be high (rate>=450) are
	// refused: they are missed at low rates, where the search begins.
	Thresholds Thresholds
	// First is the rate of the first run, in calls per second, above 0. The search goes up
	// from there, never below.
	First float64
	// Run makes an open loop at a rate, always for the same time.
	Run func(ctx context.Context, rate float64) (Run, error)
	// Probe makes a few calls one after the other, such as one caller for a second.
	// Its record says how the service is when nobody loads it.
	Probe func(ctx context.Context) (*traffic.Record, error)
	// Told, if given, is called after each run, by the goroutine that searches.
	Told func(Step)

	mostRuns int // other bounds, in tests
	mostTime time.Duration
}

// complete fills in bounds, and checks what people have given.
//
// Errors: one line.
func (o *Options) complete() error {
	o.mostRuns, o.mostTime = cmp.Or(o.mostRuns, mostRuns), cmp.Or(o.mostTime, mostTime)
	for _, t := range o.Thresholds {
		if t.least() {
			return fmt.Errorf("--fail %q: --find looks for the highest rate, and this one is missed at low ones; want < or <=", t)
		}
	}
	return nil
}

// needs returns how long a run has to be for an overload of the precision to show.
//
// A service that gets 1+p times what it can do falls behind by p seconds in each second,
// so that the last calls of a run of T wait for p T. That has to be more than the limit.
func (o *Options) needs() (d time.Duration, by Threshold) {
	for _, t := range o.Thresholds {
		if t.unit != Nanoseconds {
			continue
		}
		if n := time.Duration(min(t.limit/precision, math.MaxInt64/2)); n > d {
			d, by = n, t
		}
	}
	return d, by
}

const (
	// sureHeld runs that held make it sure that a rate holds, and sureMissed runs that
	// missed make it sure that it does not. With one run in ten spoilt by something
	// else, three of the first four misses come by chance in 4 of 1,000 rates.
	sureHeld   = 2
	sureMissed = 3
	// tries is after how many misses a rate without a held run is taken to fail while
	// the search goes on. A generator has as many.
	tries = 2
)

type level struct {
	rate                  float64
	held, missed, limited int // runs
}

type state int

const (
	open   state = iota // another run at this rate has to say
	holds               // the thresholds hold
	fails               // they do not
	limits              // the generator was the limit
)

// state takes the runs together. A level has at most 6 runs: after one that held, two
// that missed and two of a limited generator the next one decides, whatever it is.
func (l *level) state() state {
	switch {
	case l.held >= sureHeld:
		return holds
	case l.missed >= sureMissed:
		return fails
	case l.limited > tries:
		return limits
	case l.missed == tries && l.held == 0:
		return fails
	case l.limited == tries && l.held == 0:
		return limits
	case l.held == 1 && l.missed < tries:
		return holds
	default:
		return open
	}
}

// sure reports whether the state of a level needs no other run.
func (l *level) sure() bool {
	return l.held >= sureHeld || l.missed >= sureMissed || l.state() == limits
}

// ladder is what is known of all rates that were tried, in their order.
type ladder []*level

func (all *ladder) at(rate float64) *level {
	i, found := slices.BinarySearchFunc(*all, rate, func(l *level, rate float64) int { return cmp.Compare(l.rate, rate) })
	if !found {
		*all = slices.Insert(*all, i, &level{rate: rate})
	}
	return (*all)[i]
}

// bracket returns the lowest rate at which the thresholds do not hold or the generator
// is the limit, and the highest below it at which they hold. Each may be nil.
func (all ladder) bracket() (low, high *level) {
	for _, l := range all {
		switch l.state() {
		case holds:
			low = l
		case fails, limits:
			return low, l
		case open:
		}
	}
	return low, nil
}

// next returns the rate of the next run, or false when nothing is left to find out. The order:
// finish what is open, grow, narrow down, and make sure of both ends, the gentle one first.
func (all ladder) next(first float64) (rate float64, more bool) {
	for _, l := range all {
		if l.state() == open {
			return l.rate, true
		}
	}
	low, high := all.bracket()
	switch {
	case low == nil && high == nil:
		return first, true
	case high == nil && low.rate < traffic.MostRate:
		return min(2*low.rate, traffic.MostRate), true
	case low != nil && high != nil && high.rate > low.rate*(1+precision):
		return between(low.rate, high.rate), true
	case low != nil && !low.sure():
		return low.rate, true
	case high != nil && !high.sure():
		return high.rate, true
	}
	return 0, false
}

// between returns a rate in the middle by ratio, with three digits if they fit.
func between(low, high float64) float64 {
	middle := math.Sqrt(low * high)
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', 3, 64), 64); err == nil && rounded > low && rounded < high {
		return rounded
	}
	return middle
}
