package scale

import (
	"math"
	"sort"
	"time"
)

const (
	// step is the shortest time between two samples that are both kept.
	step = 200 * time.Millisecond
	// kept bounds the samples in memory: 384 s at four in a second, 130 KiB. Up to spare
	// more are kept until the oldest are dropped together.
	kept  = 1536
	spare = 256
	// gap is a time without samples after which the past tells nothing: the
	// process, or its machine, was asleep.
	gap = 10 * time.Second
)

// mark is the counters at one moment.
type mark struct {
	at       time.Duration
	arrivals uint64
	served   uint64
	slotTime time.Duration
	standing time.Duration // the part of slotTime of standing calls
	cpu      time.Duration

	// Since the mark before.
	seconds float64
	count   float64 // of arrivals
	// squares is the sum of the squared differences of neighboring counts.
	squares float64
}

// history is the last marks, oldest first.
type history struct{ marks []mark }

// add adds a mark. It reports false if the mark is too close to the last one, and drops
// it. A clock or a counter that goes back, or a gap, empties the history first.
func (h *history) add(m mark) bool {
	if len(h.marks) > 0 {
		last := h.last()
		switch passed := m.at - last.at; {
		case passed < 0, passed > gap, m.arrivals < last.arrivals, m.served < last.served, m.slotTime < last.slotTime:
			h.marks = h.marks[:0]
		case passed < step:
			return false
		default:
			m.seconds, m.count = passed.Seconds(), float64(m.arrivals-last.arrivals)
			m.squares = last.squares + (m.count-last.count)*(m.count-last.count)
		}
	}
	if cap(h.marks) == 0 {
		h.marks = make([]mark, 0, kept+spare)
	}
	if len(h.marks) == kept+spare {
		h.marks = h.marks[:copy(h.marks, h.marks[spare:])]
	}
	h.marks = append(h.marks, m)
	return true
}

// end is the index of the last mark.
func (h *history) end() int { return len(h.marks) - 1 }

func (h *history) last() *mark { return &h.marks[h.end()] }

// from returns the index of the first mark at or after an instant, at most the last one.
func (h *history) from(instant time.Duration) int {
	return min(sort.Search(len(h.marks), func(i int) bool { return h.marks[i].at >= instant }), h.end())
}

// between returns the differences of the counters from mark i to mark j.
func (h *history) between(i, j int) span {
	a, b := &h.marks[i], &h.marks[j]
	return span{
		seconds:  (b.at - a.at).Seconds(),
		arrivals: float64(b.arrivals - a.arrivals),
		served:   float64(b.served - a.served),
		busy:     (b.slotTime - a.slotTime).Seconds(),
		standing: (b.standing - a.standing).Seconds(),
		cpu:      (b.cpu - a.cpu).Seconds(),
	}
}

// span is the differences of the counters over some time.
type span struct {
	seconds, arrivals, served, busy, standing, cpu float64
}

// dispersion returns how much more the arrivals from mark i on vary from sample to sample
// than those of independent callers: the variance of the counts over their mean, 1 for a
// Poisson process and never less. It is taken from the differences of neighbors, so that
// a change of the level does not look like bursts.
func (h *history) dispersion(i int) float64 {
	differences := float64(h.end() - i - 1)
	arrivals := h.between(i, h.end()).arrivals
	if differences < 8 || arrivals == 0 {
		return 1
	}
	variance := (h.last().squares - h.marks[i+1].squares) / 2 / differences
	return math.Max(1, variance/(arrivals/(differences+1)))
}

// trendLine is a straight line through the rate of arrivals over time.
type trendLine struct {
	rate   float64 // per second, in the middle
	slope  float64 // per second and second
	length float64 // seconds
	sure   float64 // how many standard deviations the slope is above 0
}

// fit fits a line to the rates from mark i to mark j by least squares. With this
// dispersion its slope is uncertain by sqrt(12 dispersion rate / length^3).
func (h *history) fit(i, j int, dispersion float64) trendLine {
	all := h.between(i, j)
	if all.seconds <= 0 || all.arrivals == 0 {
		return trendLine{length: all.seconds}
	}
	t := -all.seconds / 2 // from the middle
	var products, squares float64
	for k := i + 1; k <= j; k++ {
		m := &h.marks[k]
		t += m.seconds / 2
		products += t * m.count
		squares += t * t * m.seconds
		t += m.seconds / 2
	}
	l := trendLine{rate: all.arrivals / all.seconds, length: all.seconds}
	if squares > 0 {
		l.slope = products / squares
		l.sure = l.slope / math.Sqrt(12*dispersion*l.rate/(all.seconds*all.seconds*all.seconds))
	}
	return l
}

// after returns the rate of the line, seconds after its end.
func (l trendLine) after(seconds float64) float64 {
	return math.Max(0, l.rate+l.slope*(l.length/2+seconds))
}
