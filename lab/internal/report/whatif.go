package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/whatif"
)

// WhatIf is what other numbers of workers and slots would give.
type WhatIf struct{ *whatif.Answer }

// fewTimes is a calibration that tells little of the tail.
const fewTimes = 1000

// Summary says in words what came out, the most important thing first.
func (w WhatIf) Summary() (lines []string) {
	for _, slots := range w.slots() {
		if len(w.Thresholds) > 0 {
			lines = append(lines, w.smallest(slots))
		}
		lines = append(lines, w.picked(slots))
	}
	for _, c := range w.Calibrations {
		lines = append(lines, w.times(c))
	}
	return lines
}

// slots are the numbers of slots that were tried, in order.
func (w WhatIf) slots() (all []int) {
	for _, c := range w.Cells {
		if n := len(all); n == 0 || all[n-1] != c.Slots {
			all = append(all, c.Slots)
		}
	}
	return all
}

// column returns the cells of a policy with some slots, by the number of workers.
func (w WhatIf) column(slots int, p whatif.Policy) (cells []whatif.Cell) {
	for _, c := range w.Cells {
		if c.Slots == slots && c.Policy == p {
			cells = append(cells, c)
		}
	}
	return cells
}

// cell is one of them. There is one for each policy if there is one of Cabrank.
func (w WhatIf) cell(like whatif.Cell, p whatif.Policy) whatif.Cell {
	for _, c := range w.column(like.Slots, p) {
		if c.Workers == like.Workers {
			return c
		}
	}
	return whatif.Cell{}
}

// size is the smallest number of workers by a policy.
func (w WhatIf) size(slots int, p whatif.Policy) whatif.Size {
	for _, s := range w.Sizes {
		if s.Slots == slots && s.Policy == p {
			return s
		}
	}
	return whatif.Size{}
}

// smallest is the sentence on how many workers hold the thresholds.
func (w WhatIf) smallest(slots int) string {
	asked := strings.Join(w.Thresholds, " and ") + " at " + perSecond(w.Rate)
	cells := w.column(slots, whatif.Cabrank)
	last := cells[len(cells)-1]
	size := w.size(slots, whatif.Cabrank)
	n := size.Workers
	switch {
	case n == 0 && len(cells) > 1:
		return fmt.Sprintf("None of %s to %s holds %s%s.", count(int64(cells[0].Workers)), workersOf(last.Workers, slots), asked, w.hopeless(last))
	case n == 0:
		return fmt.Sprintf("%s: %s does not hold%s.", workersOf(last.Workers, slots), asked, w.hopeless(last))
	}
	verb := "hold"
	if n == 1 {
		verb = "holds"
	}
	text := fmt.Sprintf("%s %s %s%s", workersOf(n, slots), verb, asked, byChance(size, last.Workers))
	var others []string
	for i, p := range whatif.Policies()[1:] {
		size := w.size(slots, p)
		takes := atMost(size.Workers, last.Workers)
		if size.Workers == n {
			takes = "as many"
		}
		if i == 0 {
			takes = "would take " + takes
		}
		others = append(others, p.String()+" "+takes+byChance(size, last.Workers))
	}
	return text + "; " + strings.Join(others, ", ") + "."
}

// atMost is a number of workers, 0 if it is above the most that were tried.
func atMost(workers, most int) string {
	if workers == 0 {
		return fmt.Sprintf("more than %d", most)
	}
	return fmt.Sprint(workers)
}

// byChance is how much of a number of workers is chance, or "".
func byChance(s whatif.Size, most int) string {
	if s.Least == s.Most {
		return ""
	}
	return fmt.Sprintf(" (%s to %s by chance)", atMost(s.Least, most), atMost(s.Most, most))
}

// hopeless says that more workers would not help, if so.
func (w WhatIf) hopeless(last whatif.Cell) string {
	c, err := whatif.ForSlots(w.Calibrations, last.Slots)
	if err != nil || last.Overload || last.Latencies.Count == 0 {
		return ""
	}
	alone := c.Service().At(0.99) + c.Echo
	if quantileOf(last, 0.99) > alone+alone/10 {
		return ""
	}
	return fmt.Sprintf(", and more would not help: one call in 100 takes longer than %s without any wait", span(alone))
}

// picked tells of the number of workers that somebody would choose: the smallest that
// holds, or without thresholds the smallest that is busy for 70 % of the time at most.
func (w WhatIf) picked(slots int) string {
	cells := w.column(slots, whatif.Cabrank)
	pick := cells[len(cells)-1]
	for _, c := range slices.Backward(cells) {
		if n := w.size(slots, whatif.Cabrank).Workers; n > 0 && c.Workers >= n || len(w.Thresholds) == 0 && c.Load <= 0.7 {
			pick = c
		}
	}
	with := "With " + workersOf(pick.Workers, slots)
	if pick.Overload {
		return fmt.Sprintf("%s comes %.2f times what can be done: the queue grows without end.", with, pick.Load)
	}
	text := fmt.Sprintf("%s p50 is %s, p95 %s, p99 %s (%s to %s by chance); slots are busy for %s of the time, and %s.",
		with, figure(pick, 0.5), figure(pick, 0.95), figure(pick, 0.99), span(pick.Least99), span(pick.Most99), percent(pick.Busy), lostOf(pick))
	if robin := w.cell(pick, whatif.RoundRobin); !robin.Overload {
		text += fmt.Sprintf(" By round robin p99 is %s, and %s.", figure(robin, 0.99), lostOf(robin))
	}
	return text
}

func lostOf(c whatif.Cell) string {
	if c.Failed == 0 {
		return "every call is answered"
	}
	return percent(c.Failed) + " of the calls get no answer"
}

// times tells of a calibration.
func (w WhatIf) times(c whatif.Calibration) string {
	s := c.Service()
	text := fmt.Sprintf("A call keeps a slot for %s in the mean, p50 %s, p99 %s: %s.", span(s.Mean()), span(s.At(0.5)), span(s.At(0.99)), c.Source)
	if c.CPU > 0 {
		text += fmt.Sprintf(" It computes for %s of that: %s take %.2g cores, and on fewer it is slower than said here.",
			span(c.CPU), perSecond(w.Rate), w.Rate*c.CPU.Seconds())
	}
	if n := s.Count(); n < fewTimes {
		text += fmt.Sprintf(" %s tell little of the tail: calibrate for longer.", calls(n))
	}
	return text
}

// workersOf is "6 workers", or with the number of slots if that is not 1.
func workersOf(n, slots int) string {
	text := count(int64(n)) + " workers"
	if n == 1 {
		text = "1 worker"
	}
	if slots > 1 {
		text += fmt.Sprintf(" of %d slots", slots)
	}
	return text
}

func perSecond(rate float64) string {
	if rate != float64(int64(rate)) {
		return fmt.Sprintf("%g/s", rate)
	}
	return count(int64(rate)) + "/s"
}

// quantileOf is a quantile of the calls that were answered; 0 if that is not known.
func quantileOf(c whatif.Cell, share float64) time.Duration {
	for _, q := range c.Latencies.Quantiles {
		if q.Share == share {
			return q.Value
		}
	}
	return 0
}

// tells reports whether there were answers enough for a quantile.
func tells(c whatif.Cell, share float64) bool { return c.Latencies.Count >= latency.Needs(share) }
