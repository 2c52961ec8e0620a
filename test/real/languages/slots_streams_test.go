//go:build soak

package languages_test

import (
	"context"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

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
		if err := <-heard; err != nil {
			t.Fatalf("subscriber %d: %v", n, err)
		}
	}
	for range 9 {
		if err := harness.CallCPUOnce(ctx, client); err != nil {
			t.Error(err)
		}
	}
	if n := c.Metric("cabrank_long_calls"); n < subscribers-5 {
		t.Errorf("%.0f long calls", n)
	}
}
