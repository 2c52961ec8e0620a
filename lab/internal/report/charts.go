package report

import (
	"fmt"
	"math"
	"time"

	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// tail is the chart of how long one call in 2, in 10, in 100 takes, and so on, as far
// as there are calls enough to tell.
func (l Load) tail() plot.Chart {
	h := l.Record.Latency()
	most := 10.0 // one call in so many
	for most < 1e6 && !h.Quantile(1-1/(10*most)).TooFew {
		most *= 10
	}
	last := h.At(1 - 1/most)
	u := axisUnit(last)
	line := plot.Line{Label: "all calls", Pen: plot.Accent}
	const steps = 60
	x := decades("one call in so many takes longer", 1, most)
	for i := range steps + 1 {
		at := math.Pow(most, float64(i)/steps)
		line.Add(at, u.of(h.At(1-1/at)))
	}
	return plot.Chart{
		Title: besideErrors(fmt.Sprintf("One call in %s takes longer than %s", count(int64(most)), span(last)), "max", l.Record.FailedShare()),
		Note:  l.note(),
		X:     x,
		Y:     upTo("latency, "+u.name, u.of(last)),
		Lines: []plot.Line{line},
	}
}

// note says where the figures of a chart are from.
func (l Load) note() string {
	kind := "open loop, latency from the moment a call was due"
	if l.Record.Loop == traffic.ClosedLoop {
		kind = "closed loop: not to be set beside an open one"
	}
	return fmt.Sprintf("%s, %s", calls(l.Record.Due), kind)
}

// course is latency and calls over time.
func (l Load) course() []plot.Chart {
	charts := []plot.Chart{l.throughput()}
	if l.Record.Calls.Answered.Count() > 0 {
		charts = append([]plot.Chart{l.latencies()}, charts...)
	}
	return charts
}

func (l Load) latencies() plot.Chart {
	line := &l.Record.Timeline
	var highest, middle time.Duration
	for i := range line.Intervals {
		c := &line.Intervals[i].Latencies
		highest, middle = max(highest, c.Quantile(0.99)), max(middle, c.Quantile(0.5))
	}
	u := axisUnit(highest)
	p99, p50 := plot.Line{Label: "p99", Pen: plot.Accent}, plot.Line{Label: "p50", Pen: plot.Gray}
	for i := range line.Intervals {
		if c := &line.Intervals[i].Latencies; c.Count() > 0 {
			at := l.moment(i)
			p99.Add(at, u.of(c.Quantile(0.99)))
			p50.Add(at, u.of(c.Quantile(0.5)))
		} else {
			p99.Break()
			p50.Break()
		}
	}
	return plot.Chart{
		Title: besideErrors(fmt.Sprintf("p99 of %s is %s at most, p50 %s", l.interval(), span(highest), span(middle)), "p99", l.Record.FailedShare()),
		Note:  l.note(),
		X:     l.time(),
		Y:     upTo("latency of answered calls, "+u.name, u.of(highest)),
		Lines: []plot.Line{p50, p99},
	}
}

func (l Load) throughput() plot.Chart {
	line := &l.Record.Timeline
	answered, lost := plot.Line{Label: "answered", Pen: plot.Accent}, plot.Line{Label: "not answered", Pen: plot.Wine}
	most, bad := 0.0, 0
	for i, of := range line.Intervals {
		seconds := min(line.Step, l.Record.Counted-time.Duration(i)*line.Step).Seconds()
		if seconds <= 0 {
			break
		}
		at := l.moment(i)
		answered.Add(at, float64(of.Answered)/seconds)
		lost.Add(at, float64(of.Due-of.Answered)/seconds)
		most = max(most, float64(of.Due)/seconds)
		if of.Due > of.Answered {
			bad++
		}
	}
	title := fmt.Sprintf("Every call was answered in all of %s", l.intervals(len(answered.Points)))
	if bad > 0 {
		title = fmt.Sprintf("In %d of %s calls were not answered", bad, l.intervals(len(answered.Points)))
	}
	return plot.Chart{
		Title: title, Note: l.note(), X: l.time(), Y: upTo("calls per second, by when they were due", most),
		Lines: []plot.Line{answered, lost},
	}
}

func (l Load) time() plot.Axis { return upTo("seconds", l.Record.Counted.Seconds()) }

// moment is the middle of an interval, in seconds.
func (l Load) moment(i int) float64 {
	return (time.Duration(i)*l.Record.Timeline.Step + l.Record.Timeline.Step/2).Seconds()
}

func (l Load) interval() string {
	if l.Record.Timeline.Step == time.Second {
		return "each second"
	}
	return "each " + span(l.Record.Timeline.Step)
}

func (l Load) intervals(n int) string {
	if l.Record.Timeline.Step == time.Second {
		return fmt.Sprintf("%d seconds", n)
	}
	return fmt.Sprintf("%d stretches of %s", n, span(l.Record.Timeline.Step))
}
