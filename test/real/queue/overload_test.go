//go:build real || soak

package queue_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startBurst makes a call of 20 ms every 3 ms, whether others have ended or not, each
// with a deadline of 300 ms, until it is told to stop.
func startBurst(t *testing.T, c *harness.Cabrank) (stop func()) {
	t.Helper()
	client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		every := time.NewTicker(3 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil {
			<-every.C
			over.Go(func() {
				limited, done := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer done()
				_, _ = client.Io(limited, &workpb.IoRequest{Millis: 20}) // most of them fail
			})
		}
	})
	stop = func() {
		cancel()
		over.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// More calls than one worker with two slots can serve are told of in the log, on the
// metrics page and by cabrank status, while they come; and that it is over.
func TestOverloadIsTold(t *testing.T) {
	const begins, ends = "overload: more calls come than can end before their deadlines; the newest go first", "the overload is over"
	worker := harness.ChaosWorker(t, filepath.Join(t.TempDir(), "ledger"))
	c := harness.StartControlled(t, worker, "--workers", "1", "--slots", "2")
	c.WaitReady(harness.Patience)
	wantTold := func(overload bool) {
		t.Helper()
		c.Wait(harness.Patience, "the gauge to tell it", func() bool { return (c.Metric("cabrank_overload") == 1) == overload })
		if text := c.Must("status"); strings.Contains(text, "overload") != overload {
			t.Errorf("an overload: %v; cabrank status says\n%s", overload, text)
		}
	}
	wantTold(false)
	stop := startBurst(t, c.Cabrank)
	c.WaitLog(harness.Patience, begins)
	wantTold(true)
	stop()
	c.WaitLog(harness.Patience, ends)
	wantTold(false)
	if began := c.LogLines(begins); len(began) != 1 || began[0].Text("level") != "WARN" || began[0].Text("callers") != "1" {
		t.Errorf("the log has %v", began)
	}
	if ended := c.LogLines(ends); len(ended) != 1 || ended[0].Text("lasted") == "" {
		t.Errorf("the log has %v", ended)
	}
	c.Stop()
}
