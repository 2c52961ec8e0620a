package main

import (
	"math"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/plot"
)

const (
	ms = time.Millisecond

	// usual is the mean time of a handler in all pictures.
	usual = 20 * ms

	// endless is the length of a queue that is never full.
	endless = 1 << 20
)

// atLoad returns n calls of one caller who keeps so many slots busy. With the same
// seed they are the same calls at every load, closer together or farther apart.
func atLoad(seed uint64, busy float64, n int, service ranksim.Service) []ranksim.Call {
	rate := busy / usual.Seconds()
	return ranksim.Workload{
		Seed:    seed,
		Until:   time.Duration(float64(n) / rate * float64(time.Second)),
		Callers: []ranksim.Caller{{Rate: rate, Service: service}},
	}.Draw()
}

// inSystem returns a quantile of the time in the system, in milliseconds.
func inSystem(r *ranksim.Result, quantile float64) float64 {
	return milliseconds(ranksim.Quantile(r.Sojourns(ranksim.Everyone), quantile))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(ms) }

// policies compares when and by what the worker of a call is chosen.
func policies(e effort) plot.Chart {
	c := plot.Chart{
		Title: "Late binding is as quick as a perfect queue",
		Y: plot.Axis{
			Label: "p99 of the time in the system, ms (log scale)",
			From:  150, To: 12_000, Log: true, Ticks: []float64{200, 500, 1000, 2000, 5000, 10_000},
		},
		X:    loadAxis(0.5, 0.95),
		Note: "4 workers, one call at a time each. 95 % of the calls take 10 ms, 5 % take 210 ms (both exponential).",
	}
	ideal := plot.Line{Label: "perfect queue", Pen: plot.Dashed}
	lines := policyLines()
	for _, load := range loads(0.5, 0.95) {
		found := make([]float64, len(lines)+1) // the last one is the ideal's
		for seed := range uint64(e.seeds) {
			calls := atLoad(seed+1, load*slots, e.calls, ranksim.Mixed())
			for i, l := range lines {
				found[i] += inSystem(ranksim.Run(l.system(seed), calls), 0.99)
			}
			found[len(lines)] += inSystem(ranksim.FirstCome(calls, slots, ranksim.Handlers{}), 0.99)
		}
		for i := range lines {
			lines[i].Add(load, found[i]/float64(e.seeds))
		}
		ideal.Add(load, found[len(lines)]/float64(e.seeds))
	}
	for _, l := range lines {
		l.Label = l.balance.String()
		c.Lines = append(c.Lines, l.Line)
	}
	c.Lines = append(c.Lines, ideal) // on top of the line that it meets
	return c
}

// policyLine is the line of one policy.
type policyLine struct {
	plot.Line

	balance rank.Balance
}

// system has the policy and nothing else that is not a default, but for a queue
// that is never full.
func (l policyLine) system(seed uint64) ranksim.System {
	return ranksim.System{
		Rank:    rank.Options{QueueLength: endless, Balance: l.balance},
		Workers: ranksim.Alike(slots, ranksim.Worker{Slots: 1}),
		Seed:    seed,
	}
}

func policyLines() []policyLine {
	return []policyLine{
		{plot.Line{Pen: plot.Gray}, rank.Random},
		{plot.Line{Pen: plot.Wine}, rank.RoundRobin},
		{plot.Line{Pen: plot.Green}, rank.P2C},
		{plot.Line{Pen: plot.Purple}, rank.PeakEWMA},
		{plot.Line{Pen: plot.Ocher}, rank.LeastRequest},
		{plot.Line{Pen: plot.Accent}, rank.LateBinding},
	}
}

// loads returns the points of lines over the load, 5 % apart.
func loads(from, to float64) []float64 {
	var all []float64
	for percent := math.Round(100 * from); percent <= 100*to; percent += 5 {
		all = append(all, percent/100)
	}
	return all
}

// loadAxis is the axis below them.
func loadAxis(from, to float64) plot.Axis {
	a := plot.Axis{Label: "load, % of what the workers can do", From: from, To: to, Percent: true}
	for i, load := range loads(from, to) {
		if i%2 == 0 {
			a.Ticks = append(a.Ticks, load)
		}
	}
	return a
}
