package ranksim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// A caller who keeps slots for long, beside one who wants 30 % of them for short
// calls: that one is answered. Its p99 is at most three times that in calm beside
// cancelled calls, whose slots are ghosts, and more beside long ones, whose callers wait
// for what they do: what is left of them for others costs work.
func TestBarCrowd(t *testing.T) {
	t.Parallel()
	bar(t, "one who crowds", func(r *recorder) {
		for _, kind := range kinds {
			w := oneCaller(r.seed, r.calls/4, 0.3, 15, kind)
			good := w.Draw()
			calm := crowd(good, nil)
			for _, c := range crowds(r.seed, w.Until) {
				got := crowd(good, c.calls)
				r.setting = fmt.Sprintf("%s beside %s", kind.name, c.name)
				r.note("of its calls answered", Share(got.Answered(OfCaller(0))), atLeast(0.99))
				r.compare(got, calm, OfCaller(0), 0.99, atMost(c.most))
			}
		}
	})
}

type crowding struct {
	name  string
	calls []Call
	most  float64
}

// crowds are callers who come when the other one has been there for a while.
func crowds(seed uint64, until time.Duration) []crowding {
	draw := func(rate float64, service Service, leaves time.Duration) []Call {
		w := Workload{Seed: seed + 100, Until: until, Callers: []Caller{{Rate: rate, Service: service, Method: -1}}}
		calls := w.Draw()
		for i := range calls {
			calls[i].Caller = 1
			calls[i].Arrives += 2 * time.Second
			if leaves > 0 {
				calls[i].Leaves = calls[i].Arrives + leaves
			}
		}
		return calls
	}
	return []crowding{
		{"60 cancelled calls a second", draw(60, Constant(10*time.Second), 5*ms), 3},
		{"600 cancelled calls a second", draw(600, Constant(10*time.Second), 5*ms), 3},
		{"10 cancelled calls a second", draw(10, Constant(10*time.Second), 5*ms), 3},
		{"calls of a minute", draw(2, Constant(time.Minute), 0), 10},
		{"calls of 2 s", draw(30, Constant(2*time.Second), 0), 10},
	}
}

// crowd runs the calls of two callers on three workers of five slots.
func crowd(good, crowd []Call) *Result {
	calls := slices.Concat(good, crowd)
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Arrives, b.Arrives) })
	o := rankOptions()
	o.QueueLength = 1000
	return Run(System{
		Rank: o, Workers: Alike(3, Worker{Slots: 5, OnCancel: rank.Hold}),
		QueueTimeout: 30 * time.Second, Accounts: make([]rank.Terms, 2),
	}, calls)
}
