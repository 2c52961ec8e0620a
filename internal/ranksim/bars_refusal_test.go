package ranksim

import (
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Refusals (each thread is free 0.5 ms after its answer), two callers,
// deadlines of 2 s and 10 % cancels: p99 of the calls that are not cancelled at
// most 1.10 times that of the ideal whose slots are late by as much. With mixed work
// at a load of 0.9 it is 1.12: half as many calls are refused there as when the bar
// was set, and those that are served instead make the p99 longer.
func TestBarRefusals(t *testing.T) {
	t.Parallel()
	bar(t, "refusals, deadlines, cancels", func(r *recorder) {
		for _, kind := range kinds {
			for _, load := range barLoads() {
				w := twoCallers(r.seed, r.calls, load, kind)
				calls := w.Draw()
				for _, how := range handlers() {
					how.worker.Late = ms / 2
					got := Run(System{
						Rank: rankOptions(), Accounts: make([]rank.Terms, 2), Workers: Alike(4, how.worker),
					}, calls)
					want := FirstCome(calls, 4, Handlers{RunOn: how.worker.RunsOn, Late: ms / 2})
					r.setting = fmt.Sprintf("%s, load %.1f, %s", kind.name, load, how.name)
					most := 1.10
					if kind.name == "mixed" && load == 0.9 {
						most = 1.12
					}
					r.compare(got, want, stays, 0.99, atMost(most))
				}
			}
		}
	})
}

func stays(c *Call, _ *Record) bool { return c.Leaves == 0 }

func twoCallers(seed uint64, n int, load float64, service Service) Workload {
	w := oneCaller(seed, n, load/2, 4, service)
	w.Until /= 2
	c := &w.Callers[0]
	c.Timeout, c.Cancel, c.Slots = 2*time.Second, 0.1, 4
	w.Callers = append(w.Callers, *c)
	return w
}
