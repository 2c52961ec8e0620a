package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Load is what one load has shown of one service.
type Load struct {
	Method  string // package.Service/Method
	Address string
	Began   time.Time
	Record  *traffic.Record
	// Busy is the share, 0 to 1, of the processors that the generator has used.
	Busy float64
	// Limited says why the generator, not the service, may have set the figures; "".
	Limited string
	// Judgement is whether thresholds held; nil if there are none.
	Judgement *goal.Judgement
	// Processes are those that answered, as far as they were named.
	Processes []Process
	// Machine and Client are lines about where and how it was measured.
	Machine, Client []string
}

// Summary says in words what came out, the most important thing first.
func (l Load) Summary() []string {
	r := l.Record
	lines := []string{l.finding(r.Latency())}
	if l.Judgement != nil {
		lines = append([]string{"Thresholds: " + l.Judgement.String() + "."}, lines...)
	}
	if lost := r.Due - r.Calls.Answered.Count(); lost > 0 {
		lines = append(lines, l.losses(lost))
	}
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
func (l Load) finding(all *latency.Histogram) string {
	r := l.Record
	if r.Due == 0 {
		return "No call was due in the counted part."
	}
	if r.Calls.Answered.Count() == 0 {
		return fmt.Sprintf("None of %s was answered.", calls(r.Due))
	}
	q := all.Quantile(0.99)
	if q.TooFew {
		q = all.Quantile(0.5)
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

// losses tells of calls without an answer.
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
			parts = append(parts, count(part.n)+" "+part.what)
		}
	}
	return fmt.Sprintf("%s had no answer, %s of those due: %s.", calls(lost), percent(r.FailedShare()), strings.Join(parts, ", "))
}

// Page returns the report.
func (l Load) Page() Page {
	r := l.Record
	p := Page{
		Title:   fmt.Sprintf("Load on %s at %s", l.Method, l.Address),
		Summary: l.Summary(),
	}
	if t := l.Thresholds(); len(t.Rows) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "Thresholds", Tables: []Table{t}})
	}
	latencies := Part{
		Heading: "Latency",
		Text:    []string{l.latencyText()},
		Tables:  []Table{l.Quantiles()},
	}
	if r.Latency().Count() > 0 {
		latencies.Charts = []plot.Chart{l.tail()}
	}
	p.Parts = append(p.Parts, latencies)
	if len(r.Timeline.Intervals) > 1 {
		p.Parts = append(p.Parts, Part{
			Heading: "Over time",
			Text:    []string{"By the moment at which calls were due: those of a pause stand where it was, not where it ended."},
			Charts:  l.course(),
		})
	}
	for _, part := range []struct {
		heading string
		table   Table
	}{{"Failures", l.Failures()}, {"Counts", l.Counts()}, {"Workers", l.Workers()}, {"CPU and memory of the service", l.Service()}} {
		if len(part.table.Rows) > 0 {
			p.Parts = append(p.Parts, Part{Heading: part.heading, Tables: []Table{part.table}})
		}
	}
	p.Parts = append(p.Parts, Part{Heading: "How it was measured", Text: slices.Concat(l.Client, l.Machine), Tables: []Table{l.Facts()}})
	return p
}

func (l Load) latencyText() string {
	if l.Record.Loop == traffic.OpenLoop {
		return "From the moment at which a call was due, whether it could be sent then or not. Calls that were not sent, or not answered, are in it with the age that they had reached; failed ones are not."
	}
	return "From the moment at which a caller made its call. Calls that were not answered are in it with the age that they had reached; failed ones are not."
}

// Thresholds is the table of what was asked for, and what came of it.
func (l Load) Thresholds() Table {
	t := Table{Columns: []Column{{Name: "threshold"}, {Name: "measured", Number: true}, {Name: "verdict"}, {Name: ""}}}
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

// Quantiles is the table of latencies.
func (l Load) Quantiles() Table {
	t := Table{Columns: []Column{{Name: "latency"}, {Name: "all calls", Number: true}}}
	all, failed := l.Record.Latency(), l.Record.Calls.Failed
	columns := []*latency.Histogram{all}
	if failed.Count() > 0 {
		columns = append(columns, failed)
		t.Columns[1].Name = "all but failed"
		t.Columns = append(t.Columns, Column{Name: "failed calls", Number: true})
	}
	row := func(name string, of func(*latency.Histogram) string) {
		cells := []string{name}
		for _, h := range columns {
			cells = append(cells, of(h))
		}
		t.Add(cells...)
	}
	row("calls", func(h *latency.Histogram) string { return count(h.Count()) })
	row("mean", func(h *latency.Histogram) string { return span(h.Mean()) })
	for _, share := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		row(quantileName(share), func(h *latency.Histogram) string {
			q := h.Quantile(share)
			if q.TooFew {
				return "too few, needs " + count(q.Needs)
			}
			return span(q.Value)
		})
	}
	row("longest", func(h *latency.Histogram) string { return span(h.Max()) })
	return t
}

// Failures is the table of calls that failed.
func (l Load) Failures() Table {
	t := Table{Columns: []Column{{Name: "calls", Number: true}, {Name: "code"}, {Name: "message"}}}
	for _, f := range l.Record.Failures {
		t.Add(count(f.Calls), codes.Code(f.Code).String(), f.Message)
	}
	return t
}

// Counts is the table of what the client has counted.
func (l Load) Counts() Table {
	t := Table{Columns: []Column{{Name: "from the first call on"}, {Name: "number", Number: true}}}
	for _, c := range l.Record.Counts {
		t.Add(c.Name, count(c.N))
	}
	return t
}

// Workers is the table of who has answered.
func (l Load) Workers() Table {
	shares := l.Record.Workers
	t := Table{
		Title:   fmt.Sprintf("Coefficient of variation %.2f; 0 is an equal share for each.", shares.Variation(0)),
		Columns: []Column{{Name: "worker"}, {Name: "calls", Number: true}, {Name: "share", Number: true}},
	}
	var sum int64
	for _, n := range shares {
		sum += n
	}
	names := slices.SortedFunc(maps.Keys(shares), func(a, b string) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		t.Add(name, count(shares[name]), percent(float64(shares[name])/float64(sum)))
	}
	return t
}

// Facts is the table of what was asked for and what was done.
func (l Load) Facts() Table {
	r := l.Record
	t := Table{Columns: []Column{{Name: ""}, {Name: ""}}}
	t.Add("plan", r.Plan)
	t.Add("began", l.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	t.Add("counted", span(r.Counted))
	t.Add("warm-up", fmt.Sprintf("%s, %s failed", calls(r.Warmup.Calls), count(r.Warmup.Failed)))
	t.Add("due", calls(r.Due))
	t.Add("answered in the counted part", rate(r.PerSecond())+" a second")
	t.Add("sent", volume(r.Sent))
	t.Add("received", volume(r.Received))
	t.Add("connections opened", count(r.Opened))
	t.Add("most calls under way", count(r.MostUnderWay))
	if q := r.Lag.Quantile(0.99); r.Lag.Count() > 0 {
		text := span(q.Value)
		if q.TooFew {
			text = "too few calls to tell; the longest " + span(r.Lag.Max())
		}
		t.Add("send lag of the generator, p99", text)
	}
	return t
}

func volume(v traffic.Volume) string {
	return fmt.Sprintf("%s messages, %s bytes", count(v.Messages), count(v.Bytes))
}

func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.2f", perSecond)
	}
	return count(int64(perSecond + 0.5))
}

func quantileName(share float64) string {
	return fmt.Sprintf("p%g", float64(int(share*1e5+0.5))/1e3)
}
