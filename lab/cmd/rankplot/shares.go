package main

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/plot"
)

// shares lets a heavy caller begin and end beside a light one.
func shares(e effort) plot.Chart {
	const begin, end = 10 * time.Second, 40 * time.Second
	apart := defaults()
	apart.Accounts = make([]rank.Terms, 2)
	var all, fair, common tally
	for round := range e.rounds {
		calls := beside(uint64(round+1), begin, end)
		light := func(pick func(int) bool) func(int) bool {
			return func(i int) bool { return calls[i].Caller == 0 && pick(i) }
		}
		all.add(calls, light(func(int) bool { return true }))
		fair.add(calls, light(answered(ranksim.Run(apart, calls))))
		common.add(calls, light(answered(ranksim.Run(defaults(), calls))))
	}
	return plot.Chart{
		Title: "A caller who asks for too much does not crowd out the others",
		Y: plot.Axis{
			Label: "calls of the light caller that are answered within 1 s, %",
			To:    115, Ticks: []float64{0, 25, 50, 75, 100},
		},
		X:    timeAxis(),
		Note: "4 workers, one call at a time each. The light caller asks for 30 % of what they can do.",
		Band: plot.Band{From: begin.Seconds(), To: end.Seconds(), Label: "the heavy caller asks for 3 times the capacity"},
		Lines: []plot.Line{
			common.per(&all, 100, plot.Line{Label: "one account for both (fair.key: none)", Pen: plot.Wine, At: 14, Below: true}),
			fair.per(&all, 100, plot.Line{Label: "a share for each caller (default)", Pen: plot.Accent, At: 14, Below: true}),
		},
	}
}

// patience is the deadline of all calls.
const patience = time.Second

// beside returns the calls of a light caller, and of a heavy one from one
// instant to another.
func beside(seed uint64, begin, end time.Duration) []ranksim.Call {
	calls := ranksim.Workload{
		Seed: seed, Until: warmUp + shown,
		Callers: []ranksim.Caller{
			{Rate: 0.3 * capacity, Service: ranksim.Mixed(), Timeout: patience},
			{Rate: 3 * capacity, Service: ranksim.Mixed(), Timeout: patience},
		},
	}.Draw()
	return slices.DeleteFunc(calls, func(c ranksim.Call) bool {
		return c.Caller == 1 && (c.Arrives < warmUp+begin || c.Arrives >= warmUp+end)
	})
}
