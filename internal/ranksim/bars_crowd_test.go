package ranksim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// A caller who keeps slots for long, beside one who wants 3 or 30 % of them for short
// calls: that one is answered. Its p99 is at most three times that in calm beside
// cancelled calls, whose slots are ghosts, and five times beside long ones, from the
// second second on.
func TestBarCrowd(t *testing.T) {
	t.Parallel()
	bar(t, "one who crowds", func(r *recorder) {
		for _, load := range []float64{0.03, 0.3} {
			for _, kind := range kinds {
				w := oneCaller(r.seed, r.calls/4, load, 15, kind)
				good := w.Draw()
				calm := crowd(good, crowding{})
				for _, c := range crowds(r.seed, w.Until) {
					got := crowd(good, c)
					r.setting = fmt.Sprintf("%s, load %v, beside %s", kind.name, load, c.name)
					since := func(call *Call, _ *Record) bool { return call.Caller == 0 && call.Arrives >= c.settled }
					r.note("of its calls answered", Share(got.Answered(since)), atLeast(0.99))
					most := c.most
					if load < 0.1 { // half of the one slot that is left is more than a seventh of seven
						most = 5
					}
					r.compare(got, calm, since, 0.99, atMost(most))
				}
			}
		}
	})
}

type crowding struct {
	name    string
	calls   []Call
	loop    Loop
	settled time.Duration
	most    float64
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
	const settled = 3 * time.Second
	twenty := Loop{Callers: 20, From: 2 * time.Second, Until: until, Service: Constant(8 * time.Second), Caller: 1, Method: -1}
	changed := twenty
	changed.From = 4 * time.Second
	short := make([]Call, 200)
	for i := range short {
		short[i] = Call{Arrives: 2*time.Second + time.Duration(i)*10*ms, Service: 5 * ms, Caller: 1, Method: -1}
	}
	dead := make([]Call, 20)
	for i := range dead {
		dead[i] = Call{Arrives: 2 * time.Second, Service: until, Caller: 1, Method: -1}
	}
	return []crowding{
		{name: "60 cancelled calls a second", calls: draw(60, Constant(10*time.Second), 5*ms), settled: settled, most: 3},
		{name: "600 cancelled calls a second", calls: draw(600, Constant(10*time.Second), 5*ms), settled: settled, most: 3},
		{name: "10 cancelled calls a second", calls: draw(10, Constant(10*time.Second), 5*ms), settled: settled, most: 3},
		{name: "calls of a minute", calls: draw(2, Constant(time.Minute), 0), settled: settled, most: 5},
		{name: "calls of 2 s", calls: draw(30, Constant(2*time.Second), 0), settled: settled, most: 5},
		{name: "20 calls of 8 s, kept up", loop: twenty, settled: settled, most: 5},
		{name: "20 calls that do not end", calls: dead, settled: settled, most: 5},
		{name: "20 calls of 8 s, kept up, of one known for short ones", calls: short, loop: changed, settled: changed.From + time.Second, most: 5},
	}
}

// crowd runs the calls of two callers on three workers of five slots.
func crowd(good []Call, crowd crowding) *Result {
	calls := slices.Concat(good, crowd.calls)
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Arrives, b.Arrives) })
	o := rankOptions()
	o.QueueLength = 1000
	return Run(System{
		Rank: o, Workers: Alike(3, Worker{Slots: 5, OnCancel: rank.Hold}),
		QueueTimeout: 30 * time.Second, Accounts: make([]rank.Terms, 2),
	}, calls, crowd.loop)
}
