package ranksim

import (
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Workers that refuse a call for which they have no thread, three threads for each slot
// of which each is free 0.5 ms after its answer, two callers, deadlines of 2 s and 10 %
// cancels: fewer than 1 call in 500 is refused, and the p99 of those that are not cancelled is at most
// 1.10 times that of the ideal whose threads are free at once.
func TestBarRefusals(t *testing.T) {
	t.Parallel()
	bar(t, "refusals, deadlines, cancels", func(r *recorder) {
		for _, kind := range kinds {
			for _, load := range barLoads() {
				w := twoCallers(r.seed, r.calls, load, kind)
				calls := w.Draw()
				for _, how := range handlers() {
					how.worker.Late, how.worker.Threads = ms/2, 3*how.worker.Slots
					got := Run(System{
						Rank: rankOptions(), Accounts: make([]rank.Terms, 2), Workers: Alike(4, how.worker),
					}, calls)
					want := FirstCome(calls, 4, Handlers{RunOn: how.worker.RunsOn})
					r.setting = fmt.Sprintf("%s, load %.1f, %s", kind.name, load, how.name)
					if got.Refusals*500 > max(len(calls), 5_000) {
						t.Errorf("%s: %d of %d calls were refused", r.setting, got.Refusals, len(calls))
					}
					r.compare(got, want, stays, 0.99, atMost(1.10))
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
