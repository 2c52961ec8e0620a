package main

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
)

// overload compares the default with a plain queue in a burst.
func overload(e effort) chart {
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
	return chart{
		title: "An overloaded service goes on answering in time",
		y: axis{
			label: "calls per second that are answered within 500 ms",
			to:    340, ticks: []float64{0, 100, 200, 300},
		},
		x:    timeAxis(),
		note: "Handlers run on when their caller has gone, as in Ruby. Lines go by the moment at which calls came.",
		band: band{from: begin.Seconds(), to: end.Seconds(), label: "1.4 times the capacity for 30 s"},
		lines: []line{
			all.per(rounds, 1, line{label: "calls that come", pen: gray, at: 9, below: true}),
			level("capacity", capacity),
			late.per(rounds, 1, line{label: "first come, first served, nothing shed", pen: wine, at: 12}),
			kept.per(rounds, 1, line{label: "default", pen: accent, at: 9, below: true}),
		},
	}
}

// answered picks the calls that were answered in time.
func answered(r *ranksim.Result) func(i int) bool {
	return func(i int) bool { return r.Records[i].Ending == ranksim.Answered }
}
