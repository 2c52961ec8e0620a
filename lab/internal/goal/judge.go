package goal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Verdict is what a run says of a threshold, as it stands in JSON.
type Verdict string

// The verdicts. Only with Held a program that was asked for thresholds ends with 0: who
// asked for a condition did not get it if nobody knows.
const (
	Held    Verdict = "held"
	Missed  Verdict = "missed"
	Unknown Verdict = "unknown"
)

// Finding is what came of one threshold.
type Finding struct {
	Threshold string  `json:"threshold"`       // its text
	Added     bool    `json:"added,omitempty"` // nobody had asked for it (Parse)
	Value     float64 `json:"value"`           // as measured, in Unit; 0 if Empty
	Unit      Unit    `json:"unit"`
	Empty     bool    `json:"empty,omitempty"` // there was nothing to measure it of
	Verdict   Verdict `json:"verdict"`         // Unknown if Empty, and in a record that is not judged
	Note      string  `json:"note,omitempty"`  // what the value is worth, in a line, or ""
}

// Measured returns the value as people read it.
func (f Finding) Measured() string {
	switch {
	case f.Empty:
		return "nothing measured"
	case f.Unit == Nanoseconds:
		return short(time.Duration(f.Value))
	case f.Unit == Share:
		return percent(f.Value)
	default:
		return rateText(f.Value)
	}
}

// Judgement is what came of all thresholds of a run.
type Judgement struct {
	// Verdict is Held if all are held, Missed if one of them is missed, else Unknown.
	Verdict Verdict `json:"verdict"`
	// Generator says in a line why nobody knows: the generator was too busy, and all
	// verdicts are Unknown, or a threshold hangs on its send lag. Else "".
	Generator string `json:"generator,omitempty"`
	// Cut says that the run was ended early. It is not judged either: that p99 held
	// for a part of the time is not what was asked.
	Cut      bool      `json:"cut_short,omitempty"`
	Findings []Finding `json:"thresholds"` // in the order of the thresholds
}

// String is a line without the thresholds that hold: "held", or why not.
func (j Judgement) String() string {
	switch {
	case j.Generator != "":
		return "not judged: " + j.Generator
	case j.Cut:
		return "not judged: the run was cut short"
	}
	parts := []string{string(j.Verdict)}
	for _, f := range j.Findings {
		if f.Verdict != Held {
			parts = append(parts, fmt.Sprintf("%s (%s)", f.Threshold, f.Measured()))
		}
	}
	return strings.Join(parts, ", ")
}

// Judge holds a record against thresholds. busy is the share, 0 to 1, of the time for
// which the busiest core of the generator was busy; 0 if not known.
//
// Quantiles, max and mean are those of Record.Latency, where calls that were not sent
// or not answered count with the age that they had reached.
//
// A quantile of a few calls is judged as it was observed, with a note. What says "too few"
// elsewhere in the lab are claims about the service, from which the next run may differ. A
// threshold is a statement about this run: p99<100ms means that at most one in a hundred of these
// calls took 100 ms or longer, and that can be counted for any number of calls. Below 100 of them
// it means all. To call it unknown would turn every short run into a failure, and whoever wants
// to end a build on it would turn the rule off.
//
// Where calls were sent late by the generator latencies are too high by the lag, and never
// too low. So a latency below its limit is below it without the lag, too, and one that is
// above by more than the lag stays above: what lies between is Unknown.
func (all Thresholds) Judge(r *traffic.Record, busy float64) Judgement {
	j := Judgement{Verdict: Held, Generator: traffic.TooBusy(busy), Cut: r.Cut}
	judged := !j.Cut && j.Generator == ""
	latencies := r.Latency()
	for _, t := range all {
		f := t.measure(r, latencies)
		without := t.without(f.Value, r)
		f.Verdict = Unknown
		if !f.Empty && judged {
			f.Verdict = t.verdict(f.Value, without)
		}
		if late := f.Value - without; t.unit == Nanoseconds && !f.Empty && (f.Verdict == Unknown && late > 0 || late > notedLag*f.Value) {
			f.Note = strings.TrimSuffix("up to "+short(time.Duration(late))+" of it is send lag of the generator; "+f.Note, "; ")
		}
		if f.Verdict == Missed || (f.Verdict == Unknown && j.Verdict == Held) {
			j.Verdict = f.Verdict
		}
		if f.Verdict == Unknown && !f.Empty && judged && j.Generator == "" {
			j.Generator = fmt.Sprintf("%s, the latest by %s, and %s hangs on it", traffic.SentLate, short(r.Lag.Max()), t)
		}
		j.Findings = append(j.Findings, f)
	}
	if judged && j.Verdict == Missed { // by another threshold, whatever the lag
		j.Generator = ""
	}
	return j
}

// notedLag is the share of a latency from which on its lag is noted, whatever it changes.
const notedLag = 0.1

// verdict holds a value against the limit, as it was and as it may be without send lag.
func (t Threshold) verdict(value, without float64) Verdict {
	switch {
	case t.holds(value) && t.holds(without):
		return Held
	case t.holds(value) || t.holds(without):
		return Unknown
	default:
		return Missed
	}
}

// lateAtAll is the lag from which on a call that failed may have failed by it: it had less
// time, or came with others.
const lateAtAll = time.Millisecond

// without is what a value may have been if no call had been sent late: the best for the service.
func (t Threshold) without(value float64, r *traffic.Record) float64 {
	var late float64 // share of the calls
	for lag, n := range r.Lag.All() {
		if lag > lateAtAll {
			late += float64(n) / float64(r.Lag.Count())
		}
	}
	unsent := float64(r.Unsent.Late)
	switch {
	case t.name == "p":
		value -= float64(r.LagAt(t.share))
	case t.name == "max":
		value -= float64(r.Lag.Max())
	case t.name == "mean":
		value -= float64(r.Lag.Mean())
	case t.unit == Share:
		value -= late
	case r.Counted > 0:
		return value + (unsent+value*r.Lag.Max().Seconds())/r.Counted.Seconds()
	}
	return max(0, value)
}

func (t Threshold) measure(r *traffic.Record, latencies *latency.Histogram) Finding {
	f := Finding{Threshold: t.text, Added: t.added, Unit: t.unit}
	switch t.name {
	case "errors":
		f.Value, f.Empty = r.FailedShare(), r.Due == 0
	case "unsent":
		f.Empty = r.Due == 0
		if !f.Empty {
			f.Value = float64(r.Unsent.Full+r.Unsent.Late) / float64(r.Due)
		}
	case "rate":
		f.Value, f.Empty = r.PerSecond(), r.Counted <= 0
	case "max":
		f.Value, f.Empty = float64(latencies.Max()), latencies.Count() == 0
	case "mean":
		f.Value, f.Empty = float64(latencies.Mean()), latencies.Count() == 0
	default:
		f.Value, f.Empty = float64(observed(latencies, t.share)), latencies.Count() == 0
		if q := latencies.Quantile(t.share); q.TooFew && !f.Empty {
			f.Note = fmt.Sprintf("of %s calls: the next run may differ, %s calls tell this quantile", Count(latencies.Count()), Count(q.Needs))
		}
	}
	return f
}

// observed returns the smallest latency that at least the share of the calls did not exceed.
// Histogram.At rounds to the nearest call instead: of 149 calls it leaves two beyond p99.
func observed(h *latency.Histogram, share float64) time.Duration {
	n := float64(h.Count())
	if n == 0 {
		return 0
	}
	rank := math.Ceil(share * n * (1 - 1e-12)) // 0.99 of 100 is 99, whatever floats say
	return h.At(rank / n)
}

// String says in a line what a search has found.
func (r Result) String() string {
	switch r.Outcome {
	case First:
		return fmt.Sprintf("fails even at the first rate, %s: %s; begin with a lower --rate", rateText(r.Fails), r.Why)
	case Highest:
		return "holds at " + rateText(r.Holds) + ", the highest rate that can be asked for"
	case Found:
		return r.known()
	case Generator:
		return r.known() + ": " + r.Why
	case Broken:
		return r.known() + "; the service did not recover: " + r.Why
	case Bounds:
		return r.known() + "; the search ended early: " + r.Why
	case Cancelled:
		return r.known() + "; the search was cancelled"
	}
	return r.known() + "; the search failed"
}

// known is the interval as far as it is known.
func (r Result) known() string {
	var parts []string
	if r.Holds > 0 {
		text := "holds at " + rateText(r.Holds)
		if !r.Sure {
			text += " (in one run, not confirmed)"
		}
		parts = append(parts, text)
	}
	if r.Fails > 0 {
		parts = append(parts, "fails at "+rateText(r.Fails))
	}
	if r.Limited > 0 {
		parts = append(parts, "the generator was the limit at "+rateText(r.Limited))
	}
	if len(parts) == 0 {
		return "no rate is known to hold or to fail"
	}
	return strings.Join(parts, ", ")
}

// String says in a line what a run came to.
func (s Step) String() string {
	text := rateText(s.Rate)
	if s.Try > 1 {
		text += fmt.Sprintf(", run %d", s.Try)
	}
	return text + ": " + s.Judgement.String()
}

// rateText writes a rate with three digits or all before the point: 1,900/s, 0.25/s.
func rateText(rate float64) string {
	if rate < 100 {
		return strconv.FormatFloat(rate, 'g', 3, 64) + "/s"
	}
	return Count(int64(math.RoundToEven(rate))) + "/s"
}

// Count writes a number with commas between the thousands.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent writes a share with up to three digits: 5%.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// short writes a duration with up to four digits: 87.31ms.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for unit*10_000 <= d {
		unit *= 10
	}
	return d.Round(unit).String()
}
