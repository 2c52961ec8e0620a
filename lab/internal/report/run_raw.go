package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// What bounds a page: charts of a kind, and points and lines in each.
const (
	mostTails    = 6
	mostCourses  = 12
	mostStrips   = 16
	mostMoments  = 100
	mostNamed    = 6 // workers with a line of their own
	tailPoints   = 40
	mostTroubles = 10 // records that could not be read, by name
)

// rawParts is what a page shows of the raw records.
type rawParts struct {
	tails, courses, shares []plot.Chart
	strips                 []plot.Strips
	courseText, sharesText []string
	missing                []string
}

// raw reads the records of the loads that are shown, one at a time.
func (r Run) raw(all cells) rawParts {
	var parts rawParts
	if r.Record == nil {
		parts.missing = []string{"The raw records are not there: no distribution of latencies, and no course over time."}
		return parts
	}
	courses, disturbed := r.courseLoads(all), r.disturbedLoads(all)
	loads := r.tailLoads()
	for _, l := range r.Result.Loads {
		tail, course, strip := slices.Contains(loads, l.Name), slices.Contains(courses, l.Name), slices.Contains(disturbed, l.Name)
		if !tail && !course && !strip {
			continue
		}
		read := r.readLoad(all, l.Name, tail, course || strip, &parts)
		if strip {
			parts.strips = append(parts.strips, r.strip(l, read)...)
		}
		if tail {
			parts.tails = append(parts.tails, r.tail(l, read)...)
		}
		if course {
			parts.courses = append(parts.courses, r.courses(l, read)...)
			parts.shares = append(parts.shares, r.shares(l, read)...)
		}
	}
	parts.courseText = []string{"One block of each arm, by the moment at which calls were due: those of a pause stand where it was, not where it ended. The other blocks are in raw/."}
	parts.sharesText = []string{"Who answered the calls of one block, by the moment at which they were due."}
	return parts
}

// tailLoads are those with a chart of their latencies: the main one, and others.
func (r Run) tailLoads() []string {
	names := []string{r.mainLoad()}
	for _, l := range r.Result.Loads {
		if len(names) < mostTails && !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	return names
}

// courseLoads are those with a course over time: where something was done, else the
// main one.
func (r Run) courseLoads(all cells) []string {
	names := r.disturbedLoads(all)
	if len(names) == 0 {
		return []string{r.mainLoad()}
	}
	return names[:min(len(names), (mostCourses+len(r.Result.Arms)-1)/max(1, len(r.Result.Arms)))]
}

// armRead is what was read of the blocks of an arm at a load.
type armRead struct {
	arm    string
	all    *latency.Histogram // of all blocks to look at; nil if that was not asked for
	errors float64
	marked bool // none of them is judged
	blocks int
	course *course // of the first of them
}

func (r Run) readLoad(all cells, load string, tail, over bool, parts *rawParts) []armRead {
	var read []armRead
	for _, arm := range r.drawOrder() {
		blocks, marked := all.of(arm, load)
		one := armRead{arm: arm, marked: marked, all: latency.New(), errors: all.errors(arm, load)}
		for _, b := range blocks {
			if !tail && one.course != nil {
				break
			}
			record, err := r.Record(b)
			if err != nil {
				if len(parts.missing) < mostTroubles {
					parts.missing = append(parts.missing, fmt.Sprintf("Round %d of %s at %s: %v.", b.Round, arm, load, err))
				}
				continue
			}
			one.blocks++
			if tail {
				one.all.Merge(record.Latency())
			}
			if over && one.course == nil {
				one.course = courseOf(b, record)
			}
		}
		if one.blocks > 0 {
			read = append(read, one)
		}
	}
	return read
}

// tail is how long one call in 2, in 10, in 100 takes, and so on, for each arm.
func (r Run) tail(l result.Load, read []armRead) []plot.Chart {
	return tailChart(l.Name+":", "all blocks", read, r.pen)
}

// tailChart has a line for each arm that has calls; read is sorted by who stands out.
func tailChart(where, of string, read []armRead, pen func(string) (plot.Pen, bool)) []plot.Chart {
	read = slices.DeleteFunc(slices.Clone(read), func(a armRead) bool { return a.all.Count() == 0 })
	if len(read) == 0 {
		return nil
	}
	fewest := slices.MinFunc(read, func(a, b armRead) int { return cmp.Compare(a.all.Count(), b.all.Count()) })
	most := 10.0 // one call in so many, as far as all arms can tell
	for most < 1e4 && !fewest.all.Quantile(1-1/(10*most)).TooFew {
		most *= 10
	}
	lowest, highest, total := math.Inf(1), 0.0, int64(0)
	var lines []plot.Line
	for _, a := range slices.Backward(read) {
		line := plot.Line{Label: starred(a.arm, a.marked)}
		line.Pen, line.Broken = pen(a.arm)
		for i := range tailPoints + 1 {
			at := 2 * math.Pow(most/2, float64(i)/tailPoints) // from the median on
			v := a.all.At(1 - 1/at).Seconds()
			line.Add(at, v)
			lowest, highest = min(lowest, max(v, 1e-6)), max(highest, v)
		}
		total += a.all.Count()
		lines = append(lines, line)
	}
	x := decades("one call in so many takes longer", 1, most)
	x.From, x.Format = 2, plainNumber
	x.Ticks = slices.DeleteFunc(x.Ticks, func(tick float64) bool { return tick < x.From })
	return []plot.Chart{{
		Title: fmt.Sprintf("%s one call in %s takes longer than %s", where, count(int64(most)), fastAndSlow(read, 1-1/most)),
		Note:  fmt.Sprintf("%s of %s; failed ones are not in it", calls(total), of),
		X:     x, Y: figureAxis("p99", "latency", lowest, highest), Lines: lines,
	}}
}

// fastAndSlow says a quantile of the arms with the lowest and the highest.
func fastAndSlow(read []armRead, share float64) string {
	by := func(a, b armRead) int { return cmp.Compare(a.all.At(share), b.all.At(share)) }
	fast, slow := slices.MinFunc(read, by), slices.MaxFunc(read, by)
	told := func(a armRead) string {
		return fmt.Sprintf("%s with %s", span(a.all.At(share)), besideErrors(starred(a.arm, a.marked), "max", a.errors))
	}
	text := told(fast)
	if slow.arm != fast.arm {
		text += ", " + told(slow)
	}
	return text
}

// course is one block over time, in at most mostMoments stretches.
type course struct {
	block          *result.Block
	step           time.Duration
	counted        time.Duration
	answered, lost []float64            // per second
	shares         map[string][]float64 // of 1, by worker; NaN where nobody answered
}

func courseOf(b *result.Block, r *traffic.Record) *course {
	line := &r.Timeline
	several := (len(line.Intervals) + mostMoments - 1) / mostMoments
	c := &course{block: b, step: time.Duration(several) * line.Step, counted: r.Counted, shares: map[string][]float64{}}
	named := busiest(r.Workers)
	for from := 0; from < len(line.Intervals); from += several {
		length := min(c.step, r.Counted-time.Duration(from)*line.Step).Seconds()
		if length <= 0 {
			break
		}
		var due, answered int64
		by := map[string]int64{}
		for _, i := range line.Intervals[from:min(from+several, len(line.Intervals))] {
			due += i.Due
			answered += i.Answered
			for worker, n := range i.Workers {
				if !slices.Contains(named, worker) {
					worker = "others"
				}
				by[worker] += n
			}
		}
		c.answered = append(c.answered, float64(answered)/length)
		c.lost = append(c.lost, float64(due-answered)/length)
		c.share(by)
	}
	return c
}

// busiest are the workers with a line of their own, by name.
func busiest(shares traffic.Shares) []string {
	names := slices.SortedFunc(maps.Keys(shares), func(a, b string) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(a, b))
	})
	return names[:min(mostNamed, len(names))]
}

// share appends one stretch.
func (c *course) share(by map[string]int64) {
	sum := int64(0)
	for worker, n := range by {
		sum += n
		for len(c.shares[worker]) < len(c.answered)-1 { // it had no call before
			c.shares[worker] = append(c.shares[worker], 0)
		}
	}
	for worker := range by {
		c.shares[worker] = append(c.shares[worker], float64(by[worker])/float64(sum))
	}
	for worker := range c.shares {
		for len(c.shares[worker]) < len(c.answered) {
			v := 0.0
			if sum == 0 {
				v = math.NaN()
			}
			c.shares[worker] = append(c.shares[worker], v)
		}
	}
}

// at is the middle of a stretch, in seconds.
func (c *course) at(i int) float64 {
	return min(time.Duration(i)*c.step+c.step/2, c.counted).Seconds()
}

// events are what was done in the block. What was done several times at once stands there
// once.
func (c *course) events() (events []plot.Band) {
	times := map[string]int{}
	for _, e := range c.block.Events {
		label := e.Did
		if e.Err != "" {
			label += " (failed)"
		}
		band := plot.Band{From: e.At.Seconds(), To: (e.At + e.Took).Seconds(), Label: label}
		same := slices.IndexFunc(events, func(old plot.Band) bool {
			return old.Label == label && band.From-old.From < c.counted.Seconds()/100
		})
		if same < 0 {
			events = append(events, band)
			continue
		}
		times[label]++
		events[same].To = max(events[same].To, band.To)
	}
	for i := range events {
		if n := times[events[i].Label]; n > 0 {
			events[i].Label = fmt.Sprintf("%d × %s", n+1, events[i].Label)
		}
	}
	return events
}

// note says which block it is, and why something could not be done to it.
func (c *course) note() string {
	parts := []string{fmt.Sprintf("round %d", c.block.Round)}
	if !c.block.Judged() {
		parts = append(parts, "marked and not judged")
	}
	for _, e := range c.block.Events {
		if text := e.Did + ": " + e.Err; e.Err != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// courses are answers and failures per second, with the same axes for all arms.
func (r Run) courses(l result.Load, read []armRead) (charts []plot.Chart) {
	most, longest := 0.0, time.Duration(0)
	for _, a := range read {
		for i := range a.course.answered {
			most = max(most, a.course.answered[i], a.course.lost[i])
		}
		longest = max(longest, a.course.counted)
	}
	y := upTo("calls per second, by when they were due", most)
	y.Format = plainNumber
	if !slices.ContainsFunc(read, func(a armRead) bool { return len(a.course.block.Events) > 0 }) {
		return r.together(l, read, timeAxis(longest), y)
	}
	for _, a := range read {
		c := a.course
		if len(c.answered) < 2 {
			continue
		}
		answered, lost := plot.Line{Label: "answered", Pen: plot.Accent}, plot.Line{Label: "not answered", Pen: plot.Wine}
		bad := 0
		for i := range c.answered {
			answered.Add(c.at(i), c.answered[i])
			lost.Add(c.at(i), c.lost[i])
			if c.lost[i] > 0 {
				bad++
			}
		}
		charts = append(charts, plot.Chart{
			Title: fmt.Sprintf("%s at %s: %s", a.arm, l.Name, c.words(bad)),
			Note:  c.note(),
			X:     timeAxis(longest), Y: y, Events: c.events(), Lines: []plot.Line{answered, lost},
		})
	}
	return charts
}

// together has all arms in one chart of answers, and one of calls without an answer: nothing
// was done to them that would have to be told apart.
func (r Run) together(l result.Load, read []armRead, x, y plot.Axis) (charts []plot.Chart) {
	for _, kind := range []struct {
		title string
		of    func(*course) []float64
	}{
		{"answers over time", func(c *course) []float64 { return c.answered }},
		{"calls without an answer over time", func(c *course) []float64 { return c.lost }},
	} {
		chart := plot.Chart{Title: fmt.Sprintf("%s: %s", l.Name, kind.title), X: x}
		most := 0.0
		for _, a := range slices.Backward(read) {
			line := plot.Line{Label: starred(a.arm, a.marked)}
			line.Pen, line.Broken = r.pen(a.arm)
			for i, v := range kind.of(a.course) {
				line.Add(a.course.at(i), v)
				most = max(most, v)
			}
			if len(line.Points) > 1 {
				chart.Lines = append(chart.Lines, line)
			}
		}
		chart.Y = upTo(y.Label, most)
		chart.Y.Format = plainNumber
		if len(chart.Lines) > 0 && most > 0 {
			charts = append(charts, chart)
		}
	}
	return charts
}

// words says in how many stretches calls were not answered, and for how long after the
// first event.
func (c *course) words(bad int) string {
	if bad == 0 {
		return "every call was answered"
	}
	text := fmt.Sprintf("calls without an answer in %d of %d stretches of %s", bad, len(c.answered), span(c.step))
	if c.step == time.Second {
		text = fmt.Sprintf("calls without an answer in %d of %d seconds", bad, len(c.answered))
	}
	if v := c.block.Figure("recovery"); finite(v) && v > 0 {
		text += fmt.Sprintf("; all are answered again after %s", seconds(v))
	} else if math.IsInf(v, 1) {
		text += "; not all were answered at the end"
	}
	return text
}

// shares are the parts of each worker over time.
func (r Run) shares(l result.Load, read []armRead) (charts []plot.Chart) {
	for _, a := range read {
		c := a.course
		if len(c.answered) < 2 || len(c.shares) < 2 {
			continue
		}
		chart := plot.Chart{
			Title: fmt.Sprintf("%s at %s: %s", a.arm, l.Name, spreadWords(c.block)),
			Note:  c.note(),
			X:     timeAxis(c.counted), Events: c.events(),
		}
		most := 0.0
		pens := []plot.Pen{plot.Wine, plot.Green, plot.Purple, plot.Ocher, plot.Gray}
		for n, worker := range slices.Sorted(maps.Keys(c.shares)) {
			line := plot.Line{Label: worker, Pen: pens[n%len(pens)], Broken: n >= len(pens)}
			for i, v := range c.shares[worker] {
				if !finite(v) {
					line.Break()
					continue
				}
				line.Add(c.at(i), v)
				most = max(most, v)
			}
			chart.Lines = append(chart.Lines, line)
		}
		chart.Y = figureAxis("errors", "share of the calls", 1, most)
		charts = append(charts, chart)
	}
	return charts
}

func spreadWords(b *result.Block) string {
	v := b.Figure("spread")
	switch {
	case !finite(v):
		return "who answered"
	case v < 0.1:
		return fmt.Sprintf("nearly equal shares (coefficient of variation %.2f)", v)
	}
	return fmt.Sprintf("unequal shares (coefficient of variation %.2f)", v)
}
