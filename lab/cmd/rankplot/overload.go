package main

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/plot"
)

// overload compares the default with a plain queue in a burst.
func overload(e effort) plot.Chart {
	const (
		begin, end       = 5 * time.Second, 35 * time.Second
		ordinary, factor = 0.7, 1.4
	)
	plain := defaults()
	plain.Rank.Admit, plain.Rank.Order = rank.BoundedLength, rank.FIFO
	var all, kept, late tally
	for round := range e.rounds {
		calls := ranksim.Workload{
			Seed: uint64(round + 1), Until: warmUp + shown,
			Callers: []ranksim.Caller{{Rate: ordinary * capacity, Service: ranksim.Mixed(), Timeout: 500 * ms}},
			Bursts:  []ranksim.Burst{{From: warmUp + begin, To: warmUp + end, Factor: factor / ordinary}},
		}.Draw()
		all.add(calls, func(int) bool { return true })
		kept.add(calls, answered(ranksim.Run(defaults(), calls)))
		late.add(calls, answered(ranksim.Run(plain, calls)))
	}
	rounds := every(e.rounds)
	return plot.Chart{
		Title: "An overloaded service goes on answering in time",
		Y: plot.Axis{
			Label: "calls per second that are answered within 500 ms",
			To:    340, Ticks: []float64{0, 100, 200, 300},
		},
		X:    timeAxis(),
		Note: "Handlers run on when their caller has gone, as in Ruby. Lines go by the moment at which calls came.",
		Band: plot.Band{From: begin.Seconds(), To: end.Seconds(), Label: "1.4 times the capacity for 30 s"},
		Lines: []plot.Line{
			all.per(rounds, 1, plot.Line{Label: "calls that come", Pen: plot.Gray, At: 9, Below: true}),
			level("capacity", capacity),
			late.per(rounds, 1, plot.Line{Label: "first come, first served, nothing shed", Pen: plot.Wine, At: 12}),
			kept.per(rounds, 1, plot.Line{Label: "default", Pen: plot.Accent, At: 9, Below: true}),
		},
	}
}

// answered picks the calls that were answered in time.
func answered(r *ranksim.Result) func(i int) bool {
	return func(i int) bool { return r.Records[i].Ending == ranksim.Answered }
}
