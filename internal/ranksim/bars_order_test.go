package ranksim

import (
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Honest slots, no deadlines, one caller: each call waits exactly as long as in
// the ideal M/G/k on the same random numbers.
func TestBarHonestSlots(t *testing.T) {
	t.Parallel()
	bar(t, "honest slots", func(r *recorder) {
		for _, kind := range kinds {
			for _, load := range []float64{0.5, 0.7, 0.9} {
				calls := oneCaller(r.seed, r.calls, load, 4, kind).Draw()
				got := Run(System{Rank: rankOptions(), Workers: Alike(4, Worker{Slots: 1})}, calls)
				want := FirstCome(calls, 4, Handlers{})
				differ := 0
				for i := range calls {
					if got.Records[i] != want.Records[i] {
						differ++
					}
				}
				r.setting = fmt.Sprintf("%s, load %.1f", kind.name, load)
				r.note("calls that wait otherwise than in the ideal", float64(differ), atMost(0))
			}
		}
	})
}

// Late binding against policies that bind early, on mixed work at 0.7: p99 at
// most 0.65 times that of the power of two choices and 0.35 times round robin's.
func TestBarEarlyBinding(t *testing.T) {
	t.Parallel()
	bar(t, "early binding", func(r *recorder) {
		calls := oneCaller(r.seed, r.calls, 0.7, 4, Mixed()).Draw()
		late := Run(System{Rank: rankOptions(), Workers: Alike(4, Worker{Slots: 1})}, calls)
		for p, most := range map[Policy]float64{Random: 1, RoundRobin: 0.35, LeastRequest: 1, P2C: 0.65, PeakEWMA: 1} {
			r.setting = "mixed, load 0.7, late binding over " + string(p)
			r.compare(late, Early(p, calls, 4, 1, Handlers{}, r.seed), Everyone, 0.99, atMost(most))
		}
	})
}

// Equal weights, a heavy caller alone at 3 times what the workers can do, a
// light one at 10 and 30 %: the light one gets at least 0.99 of what it asks
// for, and its p99 is at most 1.15 times that of absolute priority, but for the
// first 10 s.
func TestBarFairShares(t *testing.T) {
	t.Parallel()
	bar(t, "fair shares", func(r *recorder) {
		for _, kind := range kinds {
			for _, light := range []float64{0.1, 0.3} {
				w := oneCaller(r.seed, r.calls, 1, 4, kind) // so many can be served
				w.Callers = []Caller{
					{Rate: light * 200, Service: kind},
					{Rate: 3 * 200, Service: kind},
				}
				calls := w.Draw()
				o := rankOptions()
				o.QueueLength = 1000
				got := Run(System{
					Rank: o, Workers: Alike(4, Worker{Slots: 1}), Accounts: make([]rank.Terms, 2),
				}, calls)
				r.setting = fmt.Sprintf("%s, light caller at %.1f", kind.name, light)
				r.note("of its calls answered", Share(got.Answered(OfCaller(0))), atLeast(0.99))
				// Both begin at once, as strangers.
				settled := func(c *Call, _ *Record) bool { return c.Caller == 0 && c.Arrives > 10*time.Second }
				r.compare(got, Preferring(0, calls, 4, Handlers{}), settled, 0.99, atMost(1.15))
			}
		}
	})
}
