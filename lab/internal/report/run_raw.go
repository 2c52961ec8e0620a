package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// What bounds a page: pictures of a kind, and what is in each.
const (
	mostTails    = 6
	mostStrips   = 16
	mostShares   = 12
	mostMoments  = 100
	mostNamed    = 5 // workers with a pen of their own
	tailPoints   = 40
	mostTroubles = 10 // records that could not be read, by name
)

type rawParts struct {
	tails, courses, shares []*Picture
	strips                 map[string]*Picture // the courses by load
	missing                []string
}

// raw reads the records of the loads that are shown, one at a time: of each load how long
// calls took, and what happened over time where something was done, or in the main one.
func (r Run) raw(all cells) rawParts {
	parts := rawParts{strips: map[string]*Picture{}}
	if r.Record == nil {
		parts.missing = []string{"The raw records are not there: no distribution of latencies, and no course over time."}
		return parts
	}
	loads, main := r.Result.Loads, r.primary().Load
	none := !slices.ContainsFunc(loads, func(l result.Load) bool { return r.disturbed(l.Name) })
	for i, l := range loads {
		tail := i < mostTails || l.Name == main
		over := len(parts.courses) < mostStrips && r.disturbed(l.Name) || none && l.Name == main
		if !tail && !over {
			continue
		}
		read := r.readLoad(all, l.Name, tail, over, &parts)
		if tail {
			parts.tails = append(parts.tails, tailPicture(l.Name+": one call", "all blocks", read, r.pen))
		}
		if p := r.course(l.Name, read); p != nil {
			parts.strips[l.Name], parts.courses = p, append(parts.courses, p)
		}
		for _, a := range read {
			if p := a.course.shares(a.arm + " at " + l.Name); p != nil && len(parts.shares) < mostShares {
				parts.shares = append(parts.shares, p)
			}
		}
	}
	return parts
}

type armRead struct {
	arm    string
	all    *latency.Histogram // of all blocks to look at, if that was asked for
	errors float64
	marked bool    // none of them is judged
	course *course // of the first of them, if that was asked for
}

func (r Run) readLoad(all cells, load string, tail, over bool, parts *rawParts) (read []armRead) {
	for _, arm := range r.drawOrder() {
		blocks, marked := all.of(arm, load)
		one := armRead{arm: arm, marked: marked, all: latency.New(), errors: all.errors(arm, load)}
		some := false
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
			some = true
			if tail {
				one.all.Merge(record.Latency())
			}
			if over && one.course == nil {
				one.course = courseOf(b, record)
			}
		}
		if some {
			read = append(read, one)
		}
	}
	return read
}

// tailPicture is how long one call in 2, in 10, in 100 takes, and so on, as far as all arms
// can tell; nil without calls. It has those that stand out first.
func tailPicture(what, of string, read []armRead, pen func(string) (Pen, bool)) *Picture {
	read = slices.DeleteFunc(slices.Clone(read), func(a armRead) bool { return a.all.Count() == 0 })
	if len(read) == 0 {
		return nil
	}
	fewest, _ := extremes(read, func(a armRead) int64 { return a.all.Count() })
	most := 10.0 // one call in so many
	for most < 1e6 && !fewest.all.Quantile(1-1/(10*most)).TooFew {
		most *= 10
	}
	lowest, highest, total := math.Inf(1), 0.0, int64(0)
	var all []line
	for _, a := range slices.Backward(read) {
		l := line{Key: Key{Label: starred(a.arm, a.marked)}}
		l.Pen, l.Dashed = pen(a.arm)
		for i := range tailPoints + 1 {
			at := 2 * math.Pow(most/2, float64(i)/tailPoints) // from the median on
			v := a.all.At(1 - 1/at).Seconds()
			l.add(at, v)
			lowest, highest = min(lowest, max(v, 1e-6)), max(highest, v)
		}
		total += a.all.Count()
		all = append(all, l)
	}
	x := logarithmic("one call in so many takes longer", 2, most, plainNumber)
	x.from, x.ticks = 2, slices.DeleteFunc(x.ticks, func(tick float64) bool { return tick < 2 })
	return Picture{
		Title: fmt.Sprintf("%s in %s takes longer than %s", what, goal.Count(int64(most)), fastAndSlow(read, 1-1/most)),
		Note:  fmt.Sprintf("%s, %s; failed ones are not in it", calls(total), of),
	}.lines(x, figureAxis("p99", "latency", lowest, highest), all)
}

// fastAndSlow says a quantile of the arms with the lowest and the highest.
func fastAndSlow(read []armRead, share float64) string {
	fast, slow := extremes(read, func(a armRead) time.Duration { return a.all.At(share) })
	told := func(a armRead) string {
		text := span(a.all.At(share))
		if a.arm != "" {
			text += " with " + starred(a.arm, a.marked)
		}
		return besideErrors(text, "max", a.errors)
	}
	if slow.arm == fast.arm {
		return told(fast)
	}
	return told(fast) + ", " + told(slow)
}

// course is one block over time, in at most mostMoments stretches.
type course struct {
	block         *result.Block
	step, counted time.Duration
	calls         [][]float64 // per second: answered, and not
	names         []string    // of workers; others are behind the last one
	workers       [][]float64 // shares of 1
}

func courseOf(b *result.Block, r *traffic.Record) *course {
	of := &r.Timeline
	several := max(1, (len(of.Intervals)+mostMoments-1)/mostMoments)
	c := &course{block: b, step: time.Duration(several) * of.Step, counted: r.Counted, names: r.Workers.Busiest()}
	c.names = c.names[:min(mostNamed, len(c.names))]
	slices.Sort(c.names)
	for from := 0; from < len(of.Intervals); from += several {
		length := min(c.step, r.Counted-time.Duration(from)*of.Step).Seconds()
		if length <= 0 {
			break
		}
		var due, answered int64
		shares, sum := make([]float64, len(c.names)+1), 0.0
		for _, i := range of.Intervals[from:min(from+several, len(of.Intervals))] {
			due, answered = due+i.Due, answered+i.Answered
			for worker, n := range i.Workers {
				at := slices.Index(c.names, worker)
				if at < 0 {
					at = len(c.names)
				}
				shares[at], sum = shares[at]+float64(n), sum+float64(n)
			}
		}
		for i := range shares {
			shares[i] /= max(sum, 1)
		}
		c.calls = append(c.calls, []float64{float64(answered) / length, float64(due-answered) / length})
		c.workers = append(c.workers, shares)
	}
	return c
}

// lost is how many calls were not answered, and in how many stretches.
func (c *course) lost() (lost int64, stretches int) {
	n := 0.0
	for i, v := range c.calls {
		n += v[1] * min(c.step, c.counted-time.Duration(i)*c.step).Seconds()
		if v[1] > 0 {
			stretches++
		}
	}
	return int64(math.Round(n)), stretches
}

func (c *course) stretches() string {
	if c.step == time.Second {
		return fmt.Sprintf("%d seconds", len(c.calls))
	}
	return fmt.Sprintf("%d stretches of %s", len(c.calls), span(c.step))
}

// fate says what became of the calls of a block.
func (c *course) fate() string {
	n, bad := c.lost()
	if n == 0 {
		return "every call was answered"
	}
	text := fmt.Sprintf("%s failed, in %d of %s", calls(n), bad, c.stretches())
	switch v := c.block.Figure("recovery"); {
	case math.IsInf(v, 1):
		text += ", to the end"
	case finite(v) && v > 0:
		text += fmt.Sprintf(", the last %s after it began", seconds(v))
	}
	return text
}

// events are what was done in the block. What was done several times at once stands there once.
func (c *course) events() (events []Event) {
	times := map[string]int{}
	for _, e := range c.block.Events {
		label := e.Did
		if e.Err != "" {
			label += " (failed: " + e.Err + ")"
		}
		event := Event{From: e.At.Seconds(), To: (e.At + e.Took).Seconds(), Label: label}
		same := slices.IndexFunc(events, func(old Event) bool {
			return old.Label == label && event.From-old.From < c.counted.Seconds()/100
		})
		if same < 0 {
			events = append(events, event)
			continue
		}
		times[label]++
		events[same].To = max(events[same].To, event.To)
	}
	for i := range events {
		if n := times[events[i].Label]; n > 0 {
			events[i].Label = fmt.Sprintf("%d × %s", n+1, events[i].Label)
		}
	}
	return events
}

// course has all arms at a load below each other.
func (r Run) course(load string, read []armRead) *Picture {
	read = slices.DeleteFunc(slices.Clone(read), func(a armRead) bool { return a.course == nil || len(a.course.calls) < 2 })
	if len(read) == 0 {
		return nil
	}
	return coursePicture(load+": "+fewest(read), fmt.Sprintf("round %d; ", read[0].course.block.Round), read)
}

// coursePicture is answers and failures by the moment at which calls were due, on one scale.
func coursePicture(title, note string, read []armRead) *Picture {
	most, longest := 0.0, time.Duration(0)
	var rows []strip
	for _, a := range read {
		for _, v := range a.course.calls {
			most = max(most, v[0]+v[1])
		}
		longest = max(longest, a.course.counted)
		rows = append(rows, strip{strings.TrimPrefix(a.arm+": ", ": ") + starred(a.course.fate(), a.marked), a.course.step.Seconds(), a.course.calls})
	}
	note += fmt.Sprintf("a full strip is %s calls a second", goal.Count(int64(math.Ceil(most))))
	return Picture{Title: title, Note: note, Events: read[0].course.events()}.
		strips(timeAxis(longest), []Key{{Label: "answered", Pen: gray}, {Label: "not answered", Pen: wine}}, most, rows)
}

// fewest names who lost the fewest calls, and the most. Where a block was cut short that
// says nothing.
func fewest(read []armRead) string {
	lost := func(a armRead) int64 { n, _ := a.course.lost(); return n }
	best, worst := extremes(read, lost)
	switch {
	case slices.ContainsFunc(read, func(a armRead) bool { return len(a.course.calls) != len(read[0].course.calls) }):
		return "what was answered, and what was not"
	case lost(best) == lost(worst):
		return calls(lost(best)) + " failed with each"
	}
	return fmt.Sprintf("%s failed with %s, %s with %s", calls(lost(best)), best.arm, goal.Count(lost(worst)), worst.arm)
}

// shares are the parts of each worker over time; nil where there is but one.
func (c *course) shares(of string) *Picture {
	if c == nil || len(c.calls) < 2 || len(c.block.Workers) < 2 {
		return nil
	}
	said := "who answered"
	switch v := c.block.Figure("spread"); {
	case finite(v) && v < 0.1:
		said = fmt.Sprintf("nearly equal shares (coefficient of variation %.2f)", v)
	case finite(v):
		said = fmt.Sprintf("unequal shares (coefficient of variation %.2f)", v)
	}
	var keys []Key
	for i, name := range append(slices.Clone(c.names), "others")[:min(len(c.names)+1, len(c.block.Workers))] {
		pen, _ := penOf(i)
		keys = append(keys, Key{Label: name, Pen: pen})
	}
	note := fmt.Sprintf("round %d", c.block.Round)
	return Picture{Title: of + ": " + said, Note: note, Events: c.events()}.
		strips(timeAxis(c.counted), keys, 1, []strip{{"", c.step.Seconds(), c.workers}})
}
