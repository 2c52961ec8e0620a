package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/plot"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// disturbedLoads are those at which something was done, as many as are shown.
func (r Run) disturbedLoads(all cells) (names []string) {
	for _, l := range r.Result.Loads {
		done := slices.ContainsFunc(r.Result.Arms, func(a result.Arm) bool {
			return slices.ContainsFunc(all[cellKey{a.Name, l.Name}], func(b *result.Block) bool { return len(b.Events) > 0 })
		})
		if done && len(names) < mostStrips {
			names = append(names, l.Name)
		}
	}
	return names
}

// strip is all arms at a load below each other: answers and failures by the second in
// which they were due, on one scale.
func (r Run) strip(l result.Load, read []armRead) []plot.Strips {
	s := plot.Strips{Parts: []plot.BarPart{{Label: "answered", Pen: plot.Gray}, {Label: "not answered", Pen: plot.Wine}}}
	longest := time.Duration(0)
	for _, a := range read {
		c := a.course
		if c == nil || len(c.answered) < 2 {
			continue
		}
		row := plot.Strip{Label: a.arm, Text: starred(c.fate(), a.marked), Step: c.step.Seconds()}
		for i := range c.answered {
			row.Columns = append(row.Columns, []float64{c.answered[i], c.lost[i]})
			s.Most = max(s.Most, c.answered[i]+c.lost[i])
		}
		s.Rows = append(s.Rows, row)
		longest = max(longest, c.counted)
		if s.Events == nil {
			s.Events = c.events()
		}
	}
	if len(s.Rows) == 0 {
		return nil
	}
	s.Title = fmt.Sprintf("%s: %s", l.Name, r.fewest(s.Rows, read))
	s.Note = fmt.Sprintf("round %d; a full strip is %s calls a second", read[0].course.block.Round, count(int64(math.Ceil(s.Most))))
	s.X = timeAxis(longest)
	return []plot.Strips{s}
}

// failed is how many calls were not answered.
func (c *course) failed() (n float64) {
	for i, v := range c.lost {
		n += v * min(c.step, c.counted-time.Duration(i)*c.step).Seconds()
	}
	return n
}

// fate says what became of the calls of a block.
func (c *course) fate() string {
	n := int64(math.Round(c.failed()))
	if n == 0 {
		return "every call was answered"
	}
	text := calls(n) + " failed"
	switch v := c.block.Figure("recovery"); {
	case math.IsInf(v, 1):
		text += ", to the end"
	case finite(v) && v > 0:
		text += fmt.Sprintf(", the last %s after it began", seconds(v))
	}
	return text
}

// fewest names who lost the fewest calls, and the most. Where a block was cut short that
// says nothing.
func (r Run) fewest(rows []plot.Strip, read []armRead) string {
	for _, row := range rows {
		if len(row.Columns) != len(rows[0].Columns) {
			return "what was answered, and what was not"
		}
	}
	lost := map[string]float64{}
	for _, a := range read {
		if a.course != nil {
			lost[a.arm] = math.Round(a.course.failed())
		}
	}
	best, worst := rows[0].Label, rows[0].Label
	for _, row := range rows {
		if lost[row.Label] < lost[best] {
			best = row.Label
		}
		if lost[row.Label] > lost[worst] {
			worst = row.Label
		}
	}
	if lost[best] == lost[worst] {
		return calls(int64(lost[best])) + " failed with each"
	}
	return fmt.Sprintf("%s failed with %s, %s with %s", calls(int64(lost[best])), best, count(int64(lost[worst])), worst)
}
