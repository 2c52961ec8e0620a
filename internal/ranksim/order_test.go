package ranksim

import (
	"fmt"
	"testing"

	"github.com/cabrank/cabrank/internal/rank"
)

// honest is 4 workers with one slot each that are free when they have answered.
func honest() System {
	return System{Rank: rank.Options{QueueLength: 1 << 20}, Workers: Alike(4, Worker{Slots: 1})}
}

// With honest slots and without deadlines every call waits exactly as long as
// in the ideal M/G/k.
func TestWaitsEqualTheIdeal(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for _, load := range []float64{0.5, 0.7, 0.9} {
			t.Run(fmt.Sprint(kind.name, " ", load), func(t *testing.T) {
				t.Parallel()
				calls := oneCaller(1, 100_000, load, 4, kind).Draw()
				got, want := Run(honest(), calls), FirstCome(calls, 4, Handlers{})
				for i := range calls {
					if got.Records[i] != want.Records[i] {
						t.Fatalf("call %d: %+v, want %+v", i, got.Records[i], want.Records[i])
					}
				}
			})
		}
	}
}

func BenchmarkRun(b *testing.B) {
	calls := oneCaller(1, 200_000, 0.9, 4, Mixed()).Draw()
	for b.Loop() {
		Run(honest(), calls)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(calls)), "ns/call")
}
