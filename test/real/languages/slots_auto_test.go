//go:build soak

package languages_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
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
	testkit.Want(t, atAuto >= atFixed, "%.0f calls/s with auto, fewer than %.0f with 5 slots", atAuto, atFixed)
	testkit.Want(t, auto.Metric("cabrank_decisions_total", "decision", "raised_slots_auto") != 0, "the number of slots was never raised")
	testkit.Want(t, usable >= 1 && usable <= 200, "%.0f slots, beyond the bounds of auto", usable)
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

const noThread = "ResourceExhausted: No free threads in thread pool"

// Calls one after the other at a worker of one slot, each sent as soon as the one before is
// answered, find a thread (R1).
func TestRubyWithOneSlotRefusesNoCall(t *testing.T) {
	c := harness.StartLangCabrank(t, "ruby", "--workers", "1", "--slots", "1")
	wantNoneRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 5_000, 1), 5_000)
	c.Stop()
}

// wantNoneRefused checks that no call was refused, and none failed otherwise. On a machine
// that is not idle the system may run a thread late: 1 call in 200 may meet that.
func wantNoneRefused(t *testing.T, failed map[string]int, calls int) {
	t.Helper()
	refused := failed[noThread]
	delete(failed, noThread)
	t.Logf("%d of %d calls refused", refused, calls)
	testkit.Want(t, refused <= calls/200 && len(failed) == 0,
		"%d of %d calls refused, others failed with %v; want none", refused, calls, failed)
}

// Ruby's pool refuses calls even when there are no more of them than threads; no caller of
// cabrank sees that where the pool has the threads that it is told of. A pool that somebody
// fixed is warned of, and its refusals are passed on (R1).
func TestRubyRefusals(t *testing.T) {
	const slots = 8
	t.Run("without cabrank", func(t *testing.T) {
		addr := harness.StartLangWorker(t, "ruby", fmt.Sprintf("RAILS_MAX_THREADS=%d", slots))
		if failed := harness.CallCPU(t, harness.Dial(t, addr), 2000, 20); failed[noThread] == 0 {
			t.Errorf("this worker never refuses, so the test proves nothing: %v", failed)
		}
	})
	start := func(prefix ...string) *harness.Cabrank {
		args := slices.Concat([]string{"--workers", "1", "--slots", strconv.Itoa(slots), "--"}, prefix, harness.ReadLangExample(t, "ruby").Worker)
		c := harness.StartCabrankEnv(t, harness.LangEnv(t), args...)
		c.WaitReady(harness.LangBound)
		return c
	}
	const warning = "a worker says that it has no free thread"
	t.Run("as many threads as it is told of", func(t *testing.T) {
		c := start()
		for _, inFlight := range []int{4, 8, 10, 20} {
			wantNoneRefused(t, harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, inFlight), 2000)
		}
		c.Stop()
	})
	t.Run("a fixed pool", func(t *testing.T) {
		c := start("env", "RAILS_MAX_THREADS=3")
		failed := harness.CallCPU(t, harness.Dial(t, c.Addr), 2000, 20)
		testkit.Want(t, failed[noThread] != 0 && len(failed) == 1, "failed calls by status: %v; want refusals that are passed on", failed)
		c.Wait(harness.Patience, "the log to warn", func() bool { return strings.Contains(c.Log(), warning) })
		if n := strings.Count(c.Log(), warning); n != 1 || !strings.Contains(c.Log(), `"worker":"worker-1","slots":8`) {
			t.Errorf("%d warnings, want one of worker-1 and its 8 slots:\n%s", n, c.Log())
		}
		c.Stop()
	})
}

// A Node worker whose slots follow the run times serves 150 subscribers at once and
// other calls beside them.
func TestNodeServesSubscribersWithAutoSlots(t *testing.T) {
	c := harness.StartLangCabrank(t, "node", "--workers", "1", "--slots", "auto")
	client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
	ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
	defer cancel()
	const subscribers = 150
	heard := make(chan error, subscribers)
	for range subscribers {
		go func() {
			stream, err := client.Count(ctx, &workpb.CountRequest{To: 1 << 20, PauseMillis: 200})
			if err == nil {
				_, err = stream.Recv()
			}
			heard <- err
			for err == nil {
				_, err = stream.Recv()
			}
		}()
	}
	for n := range subscribers {
		err := <-heard
		testkit.Need(t, err == nil, "subscriber %d: %v", n, err)
	}
	for range 9 {
		testkit.Must(t, harness.CallCPUOnce(ctx, client))
	}
	if n := c.Metric("cabrank_long_calls"); n < subscribers-5 {
		t.Errorf("%.0f long calls", n)
	}
}
