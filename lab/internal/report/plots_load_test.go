package report_test

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/report"
)

const (
	// usual is the mean time of a handler in all pictures of the rank.
	usual = 20 * time.Millisecond
	// endless is the length of a queue that is never full.
	endless = 1 << 20
)

// curve is a line over the load, and what serves the calls of its points.
type curve struct {
	report.Line

	serve func(calls []ranksim.Call, seed uint64) *ranksim.Result
}

// perfect is the line of a perfect queue for so many slots.
func perfect(slots int, label string) curve {
	return curve{level(label), func(calls []ranksim.Call, _ uint64) *ranksim.Result {
		return ranksim.FirstCome(calls, slots, ranksim.Handlers{})
	}}
}

// overLoad draws a quantile of the time in the system over the load, the mean of so many
// seeds; full is how many slots are busy at a load of 1. Calls are the same ones at every
// load, closer together or farther apart.
func overLoad(c report.Chart, quantile, full float64, n, seeds int, service ranksim.Service, curves ...curve) report.Chart {
	c.X.Label, c.X.Percent = "load, % of what the workers can do", true
	first, last := int(100*c.X.From), int(100*c.X.To)
	for percent := first; percent <= last; percent += 5 {
		load := float64(percent) / 100
		if (percent-first)%10 == 0 {
			c.X.Ticks = append(c.X.Ticks, load)
		}
		rate := load * full / usual.Seconds()
		found := make([]float64, len(curves))
		for seed := range uint64(seeds) {
			calls := ranksim.Workload{
				Seed: seed + 1, Until: time.Duration(float64(n) / rate * float64(time.Second)),
				Callers: []ranksim.Caller{{Rate: rate, Service: service}},
			}.Draw()
			for i := range curves {
				took := ranksim.Quantile(curves[i].serve(calls, seed).Sojourns(ranksim.Everyone), quantile)
				found[i] += float64(took) / float64(time.Millisecond)
			}
		}
		for i := range curves {
			curves[i].Add(load, found[i]/float64(seeds))
		}
	}
	for _, curve := range curves {
		c.Lines = append(c.Lines, curve.Line)
	}
	return c
}

// policies compares when and by what the worker of a call is chosen: nothing else is no
// default, but for a queue that is never full.
func policies(e effort) report.Chart {
	var curves []curve
	pens := []report.Pen{"gray", "wine", "green", "purple", "ocher"}
	for i, policy := range []ranksim.Policy{ranksim.Random, ranksim.RoundRobin, ranksim.P2C, ranksim.PeakEWMA, ranksim.LeastRequest} {
		curves = append(curves, curve{named(string(policy), pens[i]), func(calls []ranksim.Call, seed uint64) *ranksim.Result {
			return ranksim.Early(policy, calls, slots, 1, ranksim.Handlers{}, seed)
		}})
	}
	late := ranksim.System{Rank: rank.Options{QueueLength: endless}, Workers: ranksim.Alike(slots, ranksim.Worker{Slots: 1})}
	curves = append(curves, curve{named("late_binding", "accent"), func(calls []ranksim.Call, _ uint64) *ranksim.Result {
		return ranksim.Run(late, calls)
	}}, perfect(slots, "perfect queue")) // on top of the line that it meets
	return overLoad(report.Chart{
		Title: "Late binding is as quick as a perfect queue",
		Y:     report.Scale{Label: "p99 of the time in the system, ms (log scale)", From: 150, To: 12_000, Log: true, Ticks: []float64{200, 500, 1000, 2000, 5000, 10_000}},
		X:     report.Scale{From: 0.5, To: 0.95},
		Note:  "4 workers, one call at a time each. 95 % of the calls take 10 ms, 5 % take 210 ms (both exponential).",
	}, 0.99, slots, e.calls, e.seeds, ranksim.Mixed(), curves...)
}

// slowWorker compares the default with late binding that knows no pace, where
// one worker is much slower than the others.
func slowWorker(e effort) report.Chart {
	workers := ranksim.Alike(5, ranksim.Worker{Slots: 4})
	workers[2].Takes = func(c *ranksim.Call, _ time.Duration) time.Duration { return 10 * c.Service }
	const busy = 4.1 * 4 // slots of ordinary speed
	run := func(o rank.Options, calls []ranksim.Call) *ranksim.Result {
		o.QueueLength = endless
		return ranksim.Run(ranksim.System{Rank: o, Workers: workers}, calls)
	}
	better := func(calls []ranksim.Call, _ uint64) *ranksim.Result { return run(rank.Options{}, calls) }
	plain := func(calls []ranksim.Call, _ uint64) *ranksim.Result {
		calls = slices.Clone(calls)
		for i := range calls {
			calls[i].Method = -1 // of which the rank is told nothing, so that it knows no pace
		}
		return run(rank.Options{Choose: rank.LeastLoaded}, calls)
	}
	return overLoad(report.Chart{
		Title: "One worker that is ten times slower hardly shows",
		Y:     report.Scale{Label: "p99.9 of the time in the system, ms", To: 1050, Ticks: []float64{0, 250, 500, 750, 1000}},
		X:     report.Scale{From: 0.3, To: 0.9},
		Note:  "5 workers with 4 slots, one of them slow. Calls of 20 ms (exponential), 200 ms at the slow worker.",
	}, 0.999, busy, e.calls, 1, ranksim.Exponential(usual),
		curve{named("takes any free slot", "wine"), plain},
		curve{named("default", "accent"), better},
		perfect(4*4, "the four others alone, a perfect queue"))
}
