package ranksim

import (
	"fmt"
	"testing"

	"github.com/cabrank/cabrank/internal/rank"
)

// One of 5 workers with 4 slots is 10 times slower: p99.9 at most 0.75 times
// that of plain late binding at half of what the workers can do, and no worse
// than 1.05 times at 0.7 and 0.9.
func TestBarSlowWorker(t *testing.T) {
	t.Parallel()
	bar(t, "a slow worker", func(r *recorder) {
		workers := Alike(5, Worker{Slots: 4})
		workers[2].Takes = slower(10)
		const capacity = 4.1 * 4 // in slots of ordinary speed
		for _, kind := range kinds {
			for _, load := range []float64{0.5, 0.7, 0.9} {
				w := oneCaller(r.seed, r.calls, load*capacity/20, 20, kind)
				calls := w.Draw()
				got := Run(System{Rank: rankOptions(), Workers: workers}, calls)
				plain := rankOptions()
				plain.Choose = rank.LeastLoaded
				w.Callers[0].Method = -1 // nothing is learned
				want := Run(System{Rank: plain, Workers: workers}, w.Draw())
				limit := atMost(1.05)
				if load == 0.5 {
					limit = atMost(0.75)
				}
				r.setting = fmt.Sprintf("%s, load %.1f, over plain late binding", kind.name, load)
				r.compare(got, want, Everyone, 0.999, limit)
			}
		}
	})
}
