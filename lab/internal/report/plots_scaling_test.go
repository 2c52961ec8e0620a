package report_test

import (
	"math"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/scalesim"
	"github.com/cabrank/cabrank/lab/internal/report"
)

// low and high are the load of these pictures, in workers that are always busy.
const low, high = 1.2, 8.0

// follow draws how many workers of 5 slots are wanted for a load over time, with a corner
// at each change. It is the mixture of the other pictures, at a fifth of its pace. A minute
// for each round is simulated at most.
func follow(e effort, unit time.Duration, offered report.Line, load func(x float64) float64, x report.Scale, title string) report.Chart {
	const slots, perWorker = 5, 5 / 0.1
	r := scalesim.Plant{
		Rate: func(at time.Duration) float64 { return load(float64(at)/float64(unit)) * perWorker }, Most: high * perWorker,
		Service: ranksim.Mixture{Often: ranksim.Exponential(50 * time.Millisecond), Rare: ranksim.Exponential(1050 * time.Millisecond), Share: 0.05},
		Slots:   slots, Boot: 5 * time.Second, Scaler: scale.New(scale.Options{Min: 1, Max: 20}, 2, slots),
	}.Run(1, 2, min(time.Duration(x.To)*unit, time.Duration(e.rounds)*time.Minute))
	wanted := named("wanted", "accent")
	last := r.Moments[0].Wanted
	for i, m := range r.Moments {
		if x := float64(m.At) / float64(unit); i == 0 || m.Wanted != last || i == len(r.Moments)-1 {
			if i > 0 {
				wanted.Add(x, float64(last))
			}
			if i == 0 || m.Wanted != last {
				wanted.Add(x, float64(m.Wanted))
			}
			last = m.Wanted
		}
	}
	return report.Chart{
		Title: title, X: x,
		Y:    report.Scale{Label: "workers", To: 14, Ticks: []float64{0, 2, 4, 6, 8, 10, 12}},
		Note: "Workers of 5 slots that start in 5 s; calls of 100 ms, mixed. 10 workers are the best fixed number.",
		Lines: []report.Line{
			level("the best fixed number", [2]float64{0, 10}, [2]float64{x.To, 10}),
			offered, wanted,
		},
	}
}

// step is a load that rises within an instant, and falls again.
func step(e effort) report.Chart {
	const from, to, until = 5.0, 10.0, 30.0
	load := func(minutes float64) float64 {
		if minutes >= from && minutes < to {
			return high
		}
		return low
	}
	offered := named("busy with what arrives", "wine")
	for _, at := range [][2]float64{{0, low}, {from, low}, {from, high}, {to, high}, {to, low}, {until, low}} {
		offered.Add(at[0], at[1])
	}
	axis := report.Scale{Label: "time, minutes", To: until, Ticks: []float64{0, 5, 10, 15, 20, 25, 30}}
	return follow(e, time.Minute, offered, load, axis, "A step of the load gets its workers within two seconds")
}

// day is a load that rises and falls as in a day, eight times as fast.
func day(e effort) report.Chart {
	const until = 3.0
	load := func(hours float64) float64 { return (high+low)/2 - (high-low)/2*math.Cos(2*math.Pi*hours/until) }
	offered := named("busy with what arrives", "wine")
	for x := 0.0; x <= until; x += 0.05 {
		offered.Add(x, load(x))
	}
	axis := report.Scale{Label: "time, hours", To: until, Ticks: []float64{0, 1, 2, 3}}
	return follow(e, time.Hour, offered, load, axis, "A day's curve is followed, not chased")
}
