package ranksim

import (
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// One of 5 workers stalls 1 s in 1 % of its calls: hedging makes p99.9 at least
// 5 times smaller for at most 2 % more work, and at full load it does nothing.
func TestBarHedging(t *testing.T) {
	t.Parallel()
	bar(t, "hedging", func(r *recorder) {
		workers := Alike(5, Worker{Slots: 4, OnCancel: rank.Free})
		workers[1].Takes = stalling(0.01)
		for _, kind := range kinds[:2] { // of mixed work the tail is long calls
			for _, load := range []float64{0.3, 0.5} {
				calls := oneCaller(r.seed, r.calls, load, 20, kind).Draw()
				plain := System{Rank: rankOptions(), Workers: workers}
				hedged := plain
				hedged.Hedge, hedged.HedgeAfter = true, 120*ms
				r.setting = fmt.Sprintf("%s, load %.1f, after 120 ms", kind.name, load)
				got := Run(hedged, calls)
				r.compare(got, Run(plain, calls), Everyone, 0.999, atMost(0.2))
				_, all := got.Held(Everyone)
				r.note("extra work", Share(got.HedgeTime, all), atMost(0.02))
			}
			w := oneCaller(r.seed, r.calls, 3, 20, kind)
			full := System{Rank: rankOptions(), Workers: workers, Hedge: true, HedgeAfter: 120 * ms}
			full.Rank.QueueLength = 1000
			got := Run(full, w.Draw())
			hedged := 0
			for i := range got.Records { // after the last arrival the queue empties
				if got.Records[i].Hedged && got.Calls[i].Arrives < w.Until-5*time.Second {
					hedged++
				}
			}
			r.setting = kind.name + ", full load"
			r.note("hedges", float64(hedged), atMost(0))
		}
	})
}
