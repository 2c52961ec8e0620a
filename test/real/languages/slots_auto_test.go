//go:build soak

package languages_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A Node worker serves as many calls at a time as its one thread can: slots that
// adapt find that out from five and serve more callers than five slots do.
func TestNodeSlotsAdapt(t *testing.T) {
	const learn, measure = 5 * time.Second, 4 * time.Second
	fixed := harness.StartLangCabrank(t, "node", "--workers", "1", "--slots", "5")
	atFixed := mixedLoad(t, fixed, learn, measure)
	fixed.Stop()
	auto := harness.StartLangCabrank(t, "node", "--workers", "1", "--slots", "auto")
	atAuto := mixedLoad(t, auto, learn, measure)
	usable := auto.Metric("cabrank_slots_usable")
	t.Logf("%.0f calls/s with 5 slots, %.0f with auto, which were %.0f at last", atFixed, atAuto, usable)
	if atAuto < atFixed {
		t.Errorf("%.0f calls/s with auto, fewer than %.0f with 5 slots", atAuto, atFixed)
	}
	if auto.Metric("cabrank_decisions_total", "decision", "raised_slots_auto") == 0 {
		t.Error("the number of slots was never raised")
	}
	if usable < 1 || usable > 200 {
		t.Errorf("%.0f slots, beyond the bounds of auto", usable)
	}
	auto.Stop()
}

// mixedLoad keeps 60 callers busy with calls of which three in four wait 20 ms
// and one computes, and returns how many a second ended in the last part.
func mixedLoad(t *testing.T, c *harness.Cabrank, learn, measure time.Duration) float64 {
	t.Helper()
	client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
	began := time.Now()
	var callers sync.WaitGroup
	var ended atomic.Int64
	for i := range 60 {
		callers.Go(func() {
			for n := i; time.Since(began) < learn+measure; n++ {
				if err := mixedCall(t.Context(), client, n); err != nil {
					t.Errorf("call failed: %v", status.Convert(err))
					return
				}
				if age := time.Since(began); age >= learn && age < learn+measure {
					ended.Add(1)
				}
			}
		})
	}
	callers.Wait()
	return float64(ended.Load()) / measure.Seconds()
}

func mixedCall(ctx context.Context, client workpb.WorkClient, n int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, harness.CallBound)
	defer cancel()
	if n%4 == 0 {
		_, err = client.Cpu(ctx, &workpb.CpuRequest{N: 15})
		return err
	}
	_, err = client.Io(ctx, &workpb.IoRequest{Millis: 20})
	return err
}
