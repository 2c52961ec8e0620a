package main

import (
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
)

// slowWorker compares the default with late binding that knows no pace, where
// one worker is much slower than the others.
func slowWorker(e effort) chart {
	workers := ranksim.Alike(5, ranksim.Worker{Slots: 4})
	workers[2].Slow = 10
	const busy = 4.1 * 4 // slots of ordinary speed
	plain := line{label: "takes any free slot", pen: wine, at: 0.38}
	better := line{label: "default", pen: accent, at: 0.38}
	fast := line{label: "the four others alone, a perfect queue", pen: dashed, at: 0.38, below: true}
	for _, load := range loads(0.3, 0.9) {
		calls := atLoad(1, load*busy, e.calls, ranksim.Exponential(usual))
		fast.add(load, inSystem(ranksim.FirstCome(calls, 4*4, ranksim.Handlers{}), 0.999))
		o := rank.Options{QueueLength: endless}
		better.add(load, inSystem(ranksim.Run(ranksim.System{Rank: o, Workers: workers}, calls), 0.999))
		o.Choose = rank.LeastLoaded
		for i := range calls {
			calls[i].Method = untold
		}
		plain.add(load, inSystem(ranksim.Run(ranksim.System{Rank: o, Workers: workers}, calls), 0.999))
	}
	return chart{
		title: "One worker that is ten times slower hardly shows",
		y: axis{
			label: "p99.9 of the time in the system, ms",
			to:    1050, ticks: []float64{0, 250, 500, 750, 1000},
		},
		x:     loadAxis(0.3, 0.9),
		note:  "5 workers with 4 slots, one of them slow. Calls of 20 ms (exponential), 200 ms at the slow worker.",
		lines: []line{plain, better, fast},
	}
}

// untold is a method of which the rank is told nothing, so that it knows no pace.
const untold = -1
