//go:build real || soak

package operations_test

import (
	"context"
	"os"
	"testing"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
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

	greeter := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
	load := harness.StartLoop(t, 20, func(ctx context.Context) error {
		_, err := greeter.SayHello(ctx, &demopb.HelloRequest{Name: "soak"})
		return err
	})
	load.WaitMore(10_000)
	load.WantNoFailure()
	answered, _ := load.Sums()
	loaded := harness.RSSKiB(t, c.PID)
	t.Logf("%d KiB at the start, %d after %d calls", start, loaded, answered)
	testkit.Want(t, loaded <= mostLoadedKiB, "want at most %d KiB", mostLoadedKiB)
}
