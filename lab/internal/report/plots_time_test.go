package report_test

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/report"
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

// add counts the picked calls of the first caller.
func (t *tally) add(calls []ranksim.Call, pick func(i int) bool) {
	for i := range calls {
		if since := calls[i].Arrives - warmUp; since >= 0 && since < shown && calls[i].Caller == 0 && pick(i) {
			t[since/time.Second]++
		}
	}
}

// line has what is counted in each second, times a factor.
func (t *tally) line(factor func(second int) float64, l report.Line) report.Line {
	for second, n := range t {
		l.Add(float64(second)+0.5, factor(second)*n)
	}
	return l
}

// count gives the calls of each round to the systems: how many come, and how many each of
// them answers in time.
func count(rounds int, draw func(seed uint64) []ranksim.Call, one, other ranksim.System) (all, byOne, byOther tally) {
	for round := range rounds {
		calls := draw(uint64(round + 1))
		all.add(calls, func(int) bool { return true })
		for i, by := range []*tally{&byOne, &byOther} {
			records := ranksim.Run([]ranksim.System{one, other}[i], calls).Records
			by.add(calls, func(i int) bool { return records[i].Ending == ranksim.Answered })
		}
	}
	return all, byOne, byOther
}

func timeAxis() report.Scale {
	return report.Scale{Label: "time, s", To: shown.Seconds(), Ticks: []float64{0, 10, 20, 30, 40, 50}}
}

// overload compares the default with a plain queue in a burst.
func overload(e effort) report.Chart {
	const begin, end, ordinary, factor = 5 * time.Second, 35 * time.Second, 0.7, 1.4
	plain := defaults()
	plain.Rank.Admit, plain.Rank.Order = rank.BoundedLength, rank.FIFO
	all, kept, late := count(e.rounds, func(seed uint64) []ranksim.Call {
		return ranksim.Workload{
			Seed: seed, Until: warmUp + shown,
			Callers: []ranksim.Caller{{Rate: ordinary * capacity, Service: ranksim.Mixed(), Timeout: 500 * time.Millisecond}},
			Bursts:  []ranksim.Burst{{From: warmUp + begin, To: warmUp + end, Factor: factor / ordinary}},
		}.Draw()
	}, defaults(), plain)
	mean := func(int) float64 { return 1 / float64(e.rounds) }
	return report.Chart{
		Title: "An overloaded service goes on answering in time",
		Note:  "Handlers run on when their caller has gone, as in Ruby. Lines go by the moment at which calls came.",
		X:     timeAxis(),
		Y:     report.Scale{Label: "calls per second that are answered within 500 ms", To: 340, Ticks: []float64{0, 100, 200, 300}},
		Band:  report.Event{From: begin.Seconds(), To: end.Seconds(), Label: "1.4 times the capacity for 30 s"},
		Lines: []report.Line{
			all.line(mean, named("calls that come", "gray")),
			level("capacity", [2]float64{0, capacity}, [2]float64{shown.Seconds(), capacity}),
			late.line(mean, named("first come, first served, nothing shed", "wine")),
			kept.line(mean, named("default", "accent")),
		},
	}
}

// shares lets a heavy caller begin and end beside a light one.
func shares(e effort) report.Chart {
	const begin, end = 10 * time.Second, 40 * time.Second
	apart := defaults()
	apart.Accounts = make([]rank.Terms, 2)
	all, fair, common := count(e.rounds, func(seed uint64) []ranksim.Call {
		calls := ranksim.Workload{
			Seed: seed, Until: warmUp + shown,
			Callers: []ranksim.Caller{
				{Rate: 0.3 * capacity, Service: ranksim.Mixed(), Timeout: time.Second}, {Rate: 3 * capacity, Service: ranksim.Mixed(), Timeout: time.Second},
			},
		}.Draw()
		return slices.DeleteFunc(calls, func(c ranksim.Call) bool {
			return c.Caller == 1 && (c.Arrives < warmUp+begin || c.Arrives >= warmUp+end)
		})
	}, apart, defaults())
	percent := func(second int) float64 { return 100 / max(all[second], 1) }
	return report.Chart{
		Title: "A caller who asks for too much does not crowd out the others",
		Note:  "4 workers, one call at a time each. The light caller asks for 30 % of what they can do.",
		X:     timeAxis(),
		Y:     report.Scale{Label: "calls of the light caller that are answered within 1 s, %", To: 115, Ticks: []float64{0, 25, 50, 75, 100}},
		Band:  report.Event{From: begin.Seconds(), To: end.Seconds(), Label: "the heavy caller asks for 3 times the capacity"},
		Lines: []report.Line{
			common.line(percent, named("one account for both (fair.key: none)", "wine")),
			fair.line(percent, named("a share for each caller (default)", "accent")),
		},
	}
}
