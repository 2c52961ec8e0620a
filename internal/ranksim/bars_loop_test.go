//go:build !race

package ranksim

import (
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Callers who wait for each answer before they make their next call, and a
// disturbance: two seconds after its end no call fails any more, however many they
// are, but for one that still waited then. In all not more than twice as many fail as
// in the plain queue, but for one setting in forty: where that is within a hair of
// failing itself, what counts as too late is chance. There it is a few more of each
// caller; all settings together, it is less than a tenth of what the plain queue loses.
func TestBarClosedLoops(t *testing.T) {
	t.Parallel()
	bar(t, "closed loops", func(r *recorder) {
		settings, worse, all, allPlain, most := 0, 0, 0, 0, 0.0
		for _, d := range disturbances() {
			late := 0
			for _, callers := range loopCallers() {
				for _, think := range []time.Duration{0, 30 * ms, 100 * ms, 300 * ms, time.Second} {
					plain, _ := d.run(r.seed, callers, think, rank.FIFO)
					failed, after := d.run(r.seed, callers, think, rank.Adaptive)
					late += after
					all, allPlain = all+failed, allPlain+plain
					most = max(most, Share(failed-2*plain, callers+d.callers))
					if settings++; failed > 2*plain {
						worse++
						r.Logf("%s, %d callers who think for %v: %d calls failed, in the plain queue %d", d.name, callers, think, failed, plain)
					}
				}
			}
			r.setting = fmt.Sprintf("%d to %d callers, %s", loopCallers()[0], loopCallers()[len(loopCallers())-1], d.name)
			r.note("calls that fail later than 2 s after it", float64(late), atMost(1))
		}
		r.setting = "all of these"
		r.note("share of settings with more than twice the failures of the plain queue", Share(worse, settings), atMost(0.025))
		r.note("failures of each caller beyond twice those of the plain queue", most, atMost(3.5))
		r.note("failures over those of the plain queue", Share(all, allPlain), atMost(0.08))
	})
}

// disturbance is what keeps 15 slots of three workers from serving as usual.
type disturbance struct {
	name    string
	lasts   time.Duration
	outage  *Outage // of two of them, from 0 on
	callers int     // that come beside the others
}

func disturbances() []disturbance {
	var all []disturbance
	for _, lasts := range []time.Duration{100 * ms, 500 * ms, 1500 * ms, 5 * time.Second} {
		all = append(
			all,
			disturbance{name: fmt.Sprintf("two workers stopped for %v", lasts), lasts: lasts, outage: &Outage{Noticed: 700 * ms}},
			disturbance{name: fmt.Sprintf("two workers killed for %v", lasts), lasts: lasts, outage: &Outage{Killed: true}},
			disturbance{name: fmt.Sprintf("300 more callers for %v", lasts), lasts: lasts, callers: 300},
		)
	}
	return append(all, disturbance{name: "undisturbed"})
}

// run returns how many calls failed, and how many of them when all should have been
// over.
func (d disturbance) run(seed uint64, callers int, think time.Duration, order rank.Order) (failed, after int) {
	const from, watched = 2 * time.Second, 4 * time.Second
	end := from + d.lasts
	work := Mixture{Often: Constant(30 * ms), Rare: Exponential(12 * ms), Share: 0.3}
	usual := Loop{Callers: callers, Until: end + watched, Service: work, Timeout: time.Second}
	if think > 0 {
		usual.Think = Exponential(think)
	}
	more := Loop{Callers: d.callers, From: from, Until: end, Service: work, Timeout: time.Second}
	workers := Alike(3, Worker{Slots: 5, RunsOn: true, Queues: true})
	for i := range 2 {
		if d.outage != nil {
			o := *d.outage
			o.From, o.To = from, end
			workers[i].Outages = []Outage{o}
		}
	}
	got := Run(System{Rank: rank.Options{QueueLength: 1000, Order: order}, Workers: workers, Seed: seed}, nil, usual, more)
	for i := range got.Records {
		if got.Records[i].Ending == Answered {
			continue
		}
		failed++
		if got.Calls[i].Arrives+got.Records[i].Sojourn > end+2*time.Second {
			after++
		}
	}
	return failed, after
}
