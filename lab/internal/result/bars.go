package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bar is what a figure of an arm at a load has to hold, in every run: a claim asks, a bar
// is held or missed.
type Bar struct {
	Figure string `json:"figure" key:"figure,required"`
	Load   string `json:"load" key:"load,required"`
	Arm    string `json:"arm" key:"arm,required"`
	// Over are other arms: what counts is the ratio to the one of them that is lowest in
	// the round, or with Less the difference. Without any it is the figure itself.
	Over  []string `json:"over,omitempty" key:"over"`
	Less  bool     `json:"less,omitempty" key:"less"`
	Most  *float64 `json:"most,omitempty" key:"most"` // what is allowed; nil is no bound
	Least *float64 `json:"least,omitempty" key:"least"`
}

// BarVerdict is how a bar ends.
type BarVerdict string

// The verdicts. BarUntold has nothing to compare with: no arm of Over was measured.
const (
	BarHeld     BarVerdict = "held"
	BarMissed   BarVerdict = "MISSED"
	BarNotValid BarVerdict = "NOT VALID"
	BarUntold   BarVerdict = "not told"
)

// Judgement is what has come of a bar.
type Judgement struct {
	Bar

	// Values has one for each round in which both sides are good: no call failed, and the
	// figure is known.
	Values  []float64
	Verdict BarVerdict
	Why     string   // of NOT VALID and "not told"
	Lowest  []string // the arms that were compared with, each once
	Marked  int      // blocks of the arm that are marked: bars are judged all the same
}

// JudgeBars holds the medians over the rounds against the bars of the run. No block is left
// out for being slow; one that failed makes the bar not valid.
func (r *Run) JudgeBars() (all []Judgement) {
	for _, b := range r.Bars {
		all = append(all, r.judge(b))
	}
	return all
}

func (r *Run) judge(b Bar) Judgement {
	j := Judgement{Bar: b}
	rounds := 0
	for i := range r.Blocks {
		ours := &r.Blocks[i]
		if ours.Arm != b.Arm || ours.Load != b.Load {
			continue
		}
		rounds++
		if !ours.Judged() || ours.IsLate(b.Figure) {
			j.Marked++
		}
		value, lowest := ours.good(b.Figure), ""
		if len(b.Over) > 0 {
			var base float64
			base, lowest = r.lowest(b, ours.Round)
			if b.Less {
				value -= base
			} else {
				value /= base
			}
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			continue
		}
		j.Values = append(j.Values, value)
		if lowest != "" && !slices.Contains(j.Lowest, lowest) {
			j.Lowest = append(j.Lowest, lowest)
		}
	}
	others := slices.ContainsFunc(r.Blocks, func(o Block) bool { return o.Load == b.Load && slices.Contains(b.Over, o.Arm) })
	switch middle := median(j.Values); {
	case len(b.Over) > 0 && !others:
		j.Verdict, j.Why = BarUntold, "none of them was measured"
	case rounds == 0 || len(j.Values) < rounds:
		j.Verdict, j.Why = BarNotValid, fmt.Sprintf("%d of %d rounds without a failed call on either side and with the figure known", len(j.Values), rounds)
	case b.Most != nil && middle > *b.Most || b.Least != nil && middle < *b.Least:
		j.Verdict = BarMissed
	default:
		j.Verdict = BarHeld
	}
	return j
}

// lowest is the lowest figure of those that a bar is over, in one round; NaN if none is good.
func (r *Run) lowest(b Bar, round int) (value float64, arm string) {
	value = math.NaN()
	for i := range r.Blocks {
		o := &r.Blocks[i]
		if o.Round != round || o.Load != b.Load || !slices.Contains(b.Over, o.Arm) {
			continue
		}
		if v := o.good(b.Figure); !math.IsNaN(v) && !(value <= v) {
			value, arm = v, o.Arm
		}
	}
	return value, arm
}

// good is a figure of a block in which no call failed; NaN otherwise. Calls that were not
// sent are none that failed, and count with their age. Of errors it is told in any case.
func (b *Block) good(figure string) float64 {
	for code, calls := range b.Errors {
		if figure != "errors" && code != "unsent" && calls > 0 {
			return math.NaN()
		}
	}
	return b.Figure(figure)
}

// String is a line: what it is about, the median with the least and the most, the verdict.
func (j Judgement) String() string {
	text := fmt.Sprintf("%s: %s of %s", j.Load, j.Figure, j.Arm)
	if len(j.Over) > 0 {
		sign := " / "
		if j.Less {
			sign = " - "
		}
		of := "the lowest of " + strings.Join(j.Over, ", ")
		if len(j.Over) == 1 {
			of = j.Over[0]
		} else if len(j.Lowest) > 0 {
			of += " (" + strings.Join(j.Lowest, ", ") + ")"
		}
		text += sign + of
	}
	if len(j.Values) > 0 {
		text += fmt.Sprintf(": %s (%s..%s)", j.number(median(j.Values)), j.number(slices.Min(j.Values)), j.number(slices.Max(j.Values)))
	}
	if j.Most != nil {
		text += ", at most " + j.number(*j.Most)
	}
	if j.Least != nil {
		text += ", at least " + j.number(*j.Least)
	}
	text += ": " + string(j.Verdict)
	if j.Why != "" {
		text += " (" + j.Why + ")"
	}
	if j.Marked > 0 {
		text += fmt.Sprintf(" (%d marked)", j.Marked)
	}
	return text
}

// number writes a value in the unit of what is compared.
func (j Judgement) number(v float64) string {
	f, _ := Known(j.Figure)
	switch {
	case len(j.Over) > 0 && !j.Less:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case f.Unit == Seconds || f.Unit == CPUSeconds:
		return time.Duration(v * float64(time.Second)).Round(time.Microsecond / 10).String()
	case f.Unit == Bytes && v < 100e3:
		return fmt.Sprintf("%.2f KiB", v/1024)
	case f.Unit == Bytes:
		return fmt.Sprintf("%.1f MB", v/1e6)
	default:
		return strconv.FormatFloat(v, 'g', 5, 64)
	}
}

// Highest is the highest rate at which an arm has fewer errors than the limit of the
// run, among the open loads that were measured.
type Highest struct {
	Arm      string
	Rate     float64 // 0 if there are too many errors at the lowest rate already
	Top      bool    // it is the highest rate that was judged: there may be higher ones
	Unjudged bool    // all blocks are marked: nothing is known
}

// HighestRates returns it for each arm that was measured at two rates or more; nothing
// if the run has no limit. A rate counts if the median of its blocks without marks is below
// the limit, and that of every lower rate. Rates at which other things happen, too, do not count.
func (r *Run) HighestRates() (all []Highest) {
	if r.Limit <= 0 {
		return nil
	}
	for _, a := range r.Arms {
		errors := map[float64][]float64{}
		for i := range r.Blocks {
			b := &r.Blocks[i]
			l, known := r.LoadNamed(b.Load)
			if b.Arm == a.Name && known && l.Unit == "calls/s" && len(b.Events) == 0 {
				judged := errors[l.X]
				if b.Judged() {
					judged = append(judged, b.Figures["errors"])
				}
				errors[l.X] = judged
			}
		}
		if len(errors) > 1 {
			all = append(all, highest(a.Name, errors, r.Limit))
		}
	}
	return all
}

func highest(arm string, errors map[float64][]float64, limit float64) Highest {
	h := Highest{Arm: arm}
	var rates []float64
	for rate, judged := range errors {
		if len(judged) > 0 {
			rates = append(rates, rate)
		}
	}
	slices.Sort(rates)
	h.Top, h.Unjudged = len(rates) > 0, len(rates) == 0
	for _, rate := range rates {
		if median(errors[rate]) >= limit {
			h.Top = false
			return h
		}
		h.Rate = rate
	}
	return h
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
