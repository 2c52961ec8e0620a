package main

import (
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/plot"
)

// slowWorker compares the default with late binding that knows no pace, where
// one worker is much slower than the others.
func slowWorker(e effort) plot.Chart {
	workers := ranksim.Alike(5, ranksim.Worker{Slots: 4})
	workers[2].Slow = 10
	const busy = 4.1 * 4 // slots of ordinary speed
	plain := plot.Line{Label: "takes any free slot", Pen: plot.Wine, At: 0.38}
	better := plot.Line{Label: "default", Pen: plot.Accent, At: 0.38}
	fast := plot.Line{Label: "the four others alone, a perfect queue", Pen: plot.Dashed, At: 0.38, Below: true}
	for _, load := range loads(0.3, 0.9) {
		calls := atLoad(1, load*busy, e.calls, ranksim.Exponential(usual))
		fast.Add(load, inSystem(ranksim.FirstCome(calls, 4*4, ranksim.Handlers{}), 0.999))
		o := rank.Options{QueueLength: endless}
		better.Add(load, inSystem(ranksim.Run(ranksim.System{Rank: o, Workers: workers}, calls), 0.999))
		o.Choose = rank.LeastLoaded
		for i := range calls {
			calls[i].Method = untold
		}
		plain.Add(load, inSystem(ranksim.Run(ranksim.System{Rank: o, Workers: workers}, calls), 0.999))
	}
	return plot.Chart{
		Title: "One worker that is ten times slower hardly shows",
		Y: plot.Axis{
			Label: "p99.9 of the time in the system, ms",
			To:    1050, Ticks: []float64{0, 250, 500, 750, 1000},
		},
		X:     loadAxis(0.3, 0.9),
		Note:  "5 workers with 4 slots, one of them slow. Calls of 20 ms (exponential), 200 ms at the slow worker.",
		Lines: []plot.Line{plain, better, fast},
	}
}

// untold is a method of which the rank is told nothing, so that it knows no pace.
const untold = -1
