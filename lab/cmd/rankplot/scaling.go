package main

import (
	"math"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/scalesim"
	"github.com/cabrank/cabrank/lab/internal/plot"
)

const (
	// scaleSlots is how many slots a worker of these pictures has, and scaleRun
	// how long calls run on average.
	scaleSlots = 5
	scaleRun   = 100 * time.Millisecond
	scaleBoot  = 5 * time.Second
)

// follow runs workers that follow a load, which is in workers that are always
// busy. It is the mixture of the other pictures, at a fifth of its pace.
func follow(load func(minutes float64) float64, most float64, until time.Duration) *scalesim.Result {
	perWorker := scaleSlots / scaleRun.Seconds()
	return scalesim.Plant{
		Rate: func(at time.Duration) float64 { return load(at.Minutes()) * perWorker }, Most: most * perWorker,
		Service: ranksim.Mixture{Often: ranksim.Exponential(50 * time.Millisecond), Rare: ranksim.Exponential(1050 * time.Millisecond), Share: 0.05},
		Slots:   scaleSlots, Boot: scaleBoot, Scaler: scale.New(scale.Options{Min: 1, Max: 20}, 2, scaleSlots),
	}.Run(1, 2, until)
}

// within bounds what is simulated of a picture over time: a minute for each round.
func (e effort) within(all time.Duration) time.Duration {
	return min(all, time.Duration(e.rounds)*time.Minute)
}

// wantedOver is the line of the workers that are wanted, with a corner at each
// change.
func wantedOver(r *scalesim.Result, unit time.Duration, l plot.Line) plot.Line {
	last := 0
	for _, m := range r.Moments {
		x := float64(m.At) / float64(unit)
		if m.Wanted != last {
			if last > 0 {
				l.Add(x, float64(last))
			}
			l.Add(x, float64(m.Wanted))
			last = m.Wanted
		}
	}
	l.Add(float64(r.Moments[len(r.Moments)-1].At)/float64(unit), float64(last))
	return l
}

// step is a load that rises within an instant, and falls again.
func step(e effort) plot.Chart {
	const low, high, from, to, until = 1.2, 8.0, 5.0, 10.0, 30.0
	load := func(minutes float64) float64 {
		if minutes >= from && minutes < to {
			return high
		}
		return low
	}
	offered := plot.Line{Label: "busy with what arrives", Pen: plot.Wine, At: 12, Points: []plot.Point{
		{X: 0, Y: low}, {X: from, Y: low}, {X: from, Y: high}, {X: to, Y: high}, {X: to, Y: low}, {X: until, Y: low},
	}}
	return plot.Chart{
		Title: "A step of the load gets its workers within two seconds",
		Y:     plot.Axis{Label: "workers", To: 14, Ticks: []float64{0, 2, 4, 6, 8, 10, 12}},
		X:     plot.Axis{Label: "time, minutes", To: until, Ticks: []float64{0, 5, 10, 15, 20, 25, 30}},
		Note:  "Workers of 5 slots that start in 5 s; calls of 100 ms, mixed. 10 workers are the best fixed number.",
		Lines: []plot.Line{
			{Label: "the best fixed number", Pen: plot.Dashed, At: 24, Points: []plot.Point{{X: 0, Y: 10}, {X: until, Y: 10}}},
			offered,
			wantedOver(follow(load, high, e.within(until*time.Minute)), time.Minute, plot.Line{Label: "wanted", Pen: plot.Accent, At: 13}),
		},
	}
}

// day is a load that rises and falls as in a day, eight times as fast.
func day(e effort) plot.Chart {
	const low, high, until = 1.2, 8.0, 3.0
	load := func(minutes float64) float64 {
		return (high+low)/2 - (high-low)/2*math.Cos(2*math.Pi*minutes/60/until)
	}
	offered := plot.Line{Label: "busy with what arrives", Pen: plot.Wine, At: 1.5, Below: true}
	for x := 0.0; x <= until; x += 0.05 {
		offered.Add(x, load(x*60))
	}
	return plot.Chart{
		Title: "A day's curve is followed, not chased",
		Y:     plot.Axis{Label: "workers", To: 14, Ticks: []float64{0, 2, 4, 6, 8, 10, 12}},
		X:     plot.Axis{Label: "time, hours", To: until, Ticks: []float64{0, 1, 2, 3}},
		Note:  "Workers of 5 slots that start in 5 s; calls of 100 ms, mixed. 10 workers are the best fixed number.",
		Lines: []plot.Line{
			{Label: "the best fixed number", Pen: plot.Dashed, At: 0.4, Points: []plot.Point{{X: 0, Y: 10}, {X: until, Y: 10}}},
			offered,
			wantedOver(follow(load, high, e.within(until*time.Hour)), time.Hour, plot.Line{Label: "wanted", Pen: plot.Accent, At: 0.8}),
		},
	}
}
