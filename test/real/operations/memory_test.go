//go:build real || soak

package operations_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// mostLoadedKiB is twice what is aimed at after load, 20 MB, of which 13 are pages
// of the program itself: what a machine does to it must not fail a test. Where that
// comes from is measured in bench/.
const mostLoadedKiB = 40 << 10

// What comes with each call is given back or used again: memory does not follow the
// number of calls.
func TestMemoryAfterLoad(t *testing.T) {
	if os.Getenv("CABRANK_BIN") != "" {
		t.Skip("another build may take more")
	}
	c := harness.StartCabrankEnv(t, []string{"GOMAXPROCS=2"},
		"--workers", "2", "--slots", "10", "--transport", "unix", "--", harness.CabrankBinary(t), "demo", "worker")
	c.WaitReady(harness.Patience)
	start := harness.RSSKiB(t, c.PID)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	tally := &harness.SoakTally{Failures: make(map[string]int)}
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() { harness.SoakCaller(ctx, t, c.Addr, tally) })
	}
	running.Wait()
	loaded := harness.RSSKiB(t, c.PID)
	t.Logf("%d KiB at the start, %d after %d calls", start, loaded, len(tally.Took))
	if loaded > mostLoadedKiB || len(tally.Took) == 0 || len(tally.Failures) > 0 {
		t.Errorf("want at most %d KiB after some calls, none of which failed: %v", mostLoadedKiB, tally.Failures)
	}
	c.Stop()
}
