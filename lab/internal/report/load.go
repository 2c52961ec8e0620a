package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Load is what one load has shown of one service.
type Load struct {
	Method  string    `json:"method"` // package.Service/Method
	Address string    `json:"address"`
	Began   time.Time `json:"began"`
	// Client and Machine are lines about how and where it was measured.
	Client  []string `json:"client"`
	Machine []string `json:"machine"`
	// Limited says why the generator, not the service, may have set the figures; "".
	Limited string `json:"generator_limits,omitempty"`
	// Judgement is whether thresholds held; nil if there are none.
	Judgement *goal.Judgement `json:"judgement,omitempty"`
	Record    *traffic.Record `json:"record"`
	Busy      float64         `json:"-"` // the share, 0 to 1, of the processors that the generator has used
}

// Document returns the report.
func (l Load) Document() Document {
	r := l.Record
	d := Document{Title: fmt.Sprintf("Load on %s at %s", l.Method, l.Address), Words: l.limits()}
	if l.Judgement != nil {
		d.Answer = []string{"Thresholds: " + l.Judgement.String() + "."}
	}
	d.Answer = append(d.Answer, l.finding())
	if lost := r.Due - r.Calls.Answered.Count(); lost > 0 {
		d.Answer = append(d.Answer, l.losses(lost))
	}
	note := "open loop, latency from the moment a call was due"
	if r.Loop == traffic.ClosedLoop {
		note = "closed loop: not to be set beside an open one"
	}
	d.Picture = tailPicture("One call", fmt.Sprintf("of %s due, %s", goal.Count(r.Due), note), []armRead{{all: r.Latency(), errors: r.FailedShare()}}, func(string) (Pen, bool) { return accent, false })
	over := []*Picture{l.course()}
	if d.Picture == nil {
		d.Picture, over = over[0], nil
	}
	d.add(Section{Heading: "Thresholds", Tables: []Table{l.thresholds()}})
	d.add(Section{Heading: "Latency", Text: []string{l.latencyText()}, Tables: []Table{l.quantiles()}})
	d.add(Section{
		Heading: "Over time", Pictures: over,
		Text: []string{"By the moment at which calls were due: those of a pause stand where it was, not where it ended."},
	})
	d.add(Section{Heading: "Failures", Tables: []Table{l.failures()}})
	d.add(Section{Heading: "Counts", Tables: []Table{l.counts()}})
	d.add(Section{Heading: "Workers", Tables: []Table{l.workers()}})
	d.add(Section{Heading: "How it was measured", Text: slices.Concat(l.Client, l.Machine), Tables: []Table{l.facts()}})
	return d
}

// limits are sentences on what the figures do not say.
func (l Load) limits() (lines []string) {
	r := l.Record
	if l.Limited != "" && l.Judgement == nil {
		lines = append(lines, "Not judged, for the generator may be what was measured: "+l.Limited+".")
	}
	if strings.HasPrefix(l.Limited, traffic.SentLate) {
		lines = append(lines, fmt.Sprintf("The lag is in the latencies: they are too high by it, by up to %s, and not too low. To measure more exactly, give the generator cores of its own (taskset) or another machine, or take a closed loop (--callers), which has no send lag.", span(r.Lag.Max())))
	}
	if r.Loop == traffic.ClosedLoop {
		lines = append(lines, "A closed loop: callers wait for answers, so a slow service is asked less often. Do not set these latencies beside those of an open loop.")
	}
	if r.Cut {
		lines = append(lines, fmt.Sprintf("Cut short after %s.", span(r.Counted)))
	}
	return lines
}

// finding is the first sentence: how many calls, how fast.
func (l Load) finding() string {
	r := l.Record
	if r.Due == 0 {
		return "No call was due in the counted part."
	}
	if r.Calls.Answered.Count() == 0 {
		return fmt.Sprintf("None of %s was answered.", calls(r.Due))
	}
	q := r.Latency().Quantile(0.99)
	if q.TooFew {
		q = r.Latency().Quantile(0.5)
	}
	text := fmt.Sprintf("%s answered, %s a second, the slowest in %s.",
		calls(r.Calls.Answered.Count()), rate(r.PerSecond()), span(r.Calls.Answered.Max()))
	if q.TooFew {
		return text
	}
	errors := ""
	if r.Calls.Failed.Count() > 0 { // they are in no latency
		errors = ", with errors of " + percent(r.FailedShare())
	}
	return fmt.Sprintf("%s is %s%s. %s", quantileName(q.Share), span(q.Value), errors, text)
}

func (l Load) losses(lost int64) string {
	r := l.Record
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{r.Calls.Failed.Count(), "failed"},
		{r.Unsent.Late, "passed their deadline before they could be sent"},
		{r.Unsent.Full, "found too many others under way"},
		{r.Open.Count(), "had not ended when the grace was over"},
	} {
		if part.n > 0 {
			parts = append(parts, goal.Count(part.n)+" "+part.what)
		}
	}
	return fmt.Sprintf("%s had no answer, %s of those due: %s.", calls(lost), percent(r.FailedShare()), strings.Join(parts, ", "))
}

// course is what was answered over time, and what was not; nil if it was a moment.
func (l Load) course() *Picture {
	c := courseOf(&result.Block{}, l.Record)
	if len(c.calls) < 2 {
		return nil
	}
	title := "Every call was answered in all of " + c.stretches()
	if _, bad := c.lost(); bad > 0 {
		title = fmt.Sprintf("In %d of %s calls were not answered", bad, c.stretches())
	}
	return coursePicture(title, "", []armRead{{course: c}})
}

func (l Load) latencyText() string {
	if l.Record.Loop == traffic.OpenLoop {
		return "From the moment at which a call was due, whether it could be sent then or not. Calls that were not sent, or not answered, are in it with the age that they had reached; failed ones are not."
	}
	return "From the moment at which a caller made its call. Calls that were not answered are in it with the age that they had reached; failed ones are not."
}

func (l Load) thresholds() Table {
	t := Table{Columns: columnsOf("threshold", "#measured", "verdict", "")}
	if l.Judgement == nil {
		return t
	}
	for _, f := range l.Judgement.Findings {
		note := f.Note
		if f.Added {
			note = strings.TrimPrefix(note+"; added, for no other one is about errors", "; ")
		}
		t.Add(f.Threshold, f.Measured(), string(f.Verdict), note)
	}
	return t
}

func (l Load) quantiles() Table {
	t := Table{Columns: columnsOf("latency", "#all calls")}
	of := []*latency.Histogram{l.Record.Latency()}
	if failed := l.Record.Calls.Failed; failed.Count() > 0 {
		of = append(of, failed)
		t.Columns = columnsOf("latency", "#all but failed", "#failed calls")
	}
	row := func(name string, text func(*latency.Histogram) string) {
		cells := []string{name}
		for _, h := range of {
			cells = append(cells, text(h))
		}
		t.Add(cells...)
	}
	row("calls", func(h *latency.Histogram) string { return goal.Count(h.Count()) })
	row("mean", func(h *latency.Histogram) string { return span(h.Mean()) })
	for _, share := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		row(quantileName(share), func(h *latency.Histogram) string {
			q := h.Quantile(share)
			switch beyond := float64(h.Count()) * (1 - share); {
			case q.TooFew && beyond < 2: // it would be the longest
				return "too few, needs " + goal.Count(q.Needs)
			case q.TooFew:
				return span(h.At(share)) + ", may be chance: needs " + goal.Count(q.Needs)
			}
			return span(q.Value)
		})
	}
	row("longest", func(h *latency.Histogram) string { return span(h.Max()) })
	return t
}

func (l Load) failures() Table {
	t := Table{Columns: columnsOf("#calls", "code", "message")}
	for _, f := range l.Record.Failures {
		t.Add(goal.Count(f.Calls), codes.Code(f.Code).String(), f.Message)
	}
	return t
}

func (l Load) counts() Table {
	t := Table{Columns: columnsOf("from the first call on", "#number")}
	for _, c := range l.Record.Counts {
		t.Add(c.Name, goal.Count(c.N))
	}
	return t
}

func (l Load) workers() Table {
	shares, sum := l.Record.Workers, int64(0)
	t := Table{
		Title:   fmt.Sprintf("Coefficient of variation %.2f; 0 is an equal share for each.", shares.Variation(0)),
		Columns: columnsOf("worker", "#calls", "#share"),
	}
	for _, n := range shares {
		sum += n
	}
	for _, name := range shares.Busiest() {
		t.Add(name, goal.Count(shares[name]), percent(float64(shares[name])/float64(sum)))
	}
	return t
}

func (l Load) facts() Table {
	r := l.Record
	volume := func(v traffic.Volume) string {
		return fmt.Sprintf("%s messages, %s bytes", goal.Count(v.Messages), goal.Count(v.Bytes))
	}
	t := Table{Columns: columnsOf("", ""), PageOnly: true, Rows: [][]string{
		{"plan", r.Plan},
		{"began", l.Began.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"counted", span(r.Counted)},
		{"warm-up", fmt.Sprintf("%s, %s failed", calls(r.Warmup.Calls), goal.Count(r.Warmup.Failed))},
		{"due", calls(r.Due)},
		{"answered in the counted part", rate(r.PerSecond()) + " a second"},
		{"sent", volume(r.Sent)},
		{"received", volume(r.Received)},
		{"connections opened", goal.Count(r.Opened)},
		{"most calls under way", goal.Count(r.MostUnderWay)},
	}}
	if q := r.Lag.Quantile(0.99); r.Lag.Count() > 0 {
		text := span(q.Value)
		if q.TooFew {
			text = "too few calls to tell; the longest " + span(r.Lag.Max())
		}
		t.Add("send lag of the generator, p99", text)
	}
	return t
}
