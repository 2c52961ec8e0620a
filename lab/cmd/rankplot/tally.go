package main

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/plot"
)

const (
	// slots is how many calls can run at once in the pictures over time, and
	// capacity how many can each second.
	slots    = 4
	capacity = float64(slots) * float64(time.Second) / float64(usual)

	// warmUp comes before what is shown: the rank learns how long calls run.
	warmUp = 20 * time.Second
	shown  = 50 * time.Second
)

// defaults is a rank without any setting, before workers of one thread whose
// handlers run on after a cancel, as in Ruby.
func defaults() ranksim.System {
	return ranksim.System{
		Rank:         rank.Options{QueueLength: 1000},
		QueueTimeout: 30 * time.Second,
		Workers:      ranksim.Alike(slots, ranksim.Worker{Slots: 1, RunsOn: true, OnCancel: rank.Hold}),
	}
}

// tally counts calls by the second in which they came.
type tally [shown / time.Second]float64

// add counts the picked calls.
func (t *tally) add(calls []ranksim.Call, pick func(i int) bool) {
	for i := range calls {
		if since := calls[i].Arrives - warmUp; since >= 0 && since < shown && pick(i) {
			t[since/time.Second]++
		}
	}
}

// per returns the line of what is counted over what one second of another tally
// has, times a factor.
func (t *tally) per(other *tally, factor float64, l plot.Line) plot.Line {
	for second, n := range t {
		l.Add(float64(second)+0.5, factor*n/max(other[second], 1))
	}
	return l
}

// every is a tally with the same number in all seconds.
func every(n int) *tally {
	var t tally
	for second := range t {
		t[second] = float64(n)
	}
	return &t
}

// level is a line at one height, named after what is shown of a burst.
func level(label string, y float64) plot.Line {
	return plot.Line{Label: label, Pen: plot.Dashed, At: 44, Points: []plot.Point{{X: 0, Y: y}, {X: shown.Seconds(), Y: y}}}
}

func timeAxis() plot.Axis {
	return plot.Axis{Label: "time, s", To: shown.Seconds(), Ticks: []float64{0, 10, 20, 30, 40, 50}}
}
