package harness

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cabrank/cabrank/test/real/oneslot"
)

// OneSlotRole as the first argument makes the test binary a worker that runs one
// call at a time and keeps a record of each.
const OneSlotRole = "one-slot-worker"

func runOneSlot(args []string) error {
	w := &oneslot.Worker{Name: os.Getenv("CABRANK_WORKER")}
	flags := flag.NewFlagSet(OneSlotRole, flag.ContinueOnError)
	records := flags.String("records", "", "folder of the records")
	busy := flags.String("busy", string(oneslot.Run), "what becomes of a call beside another one")
	flags.DurationVar(&w.Lag, "lag", 0, "how long after its answer a call still takes the slot")
	flags.DurationVar(&w.Stall, "stall", 0, "what some calls take longer")
	stalls := flags.String("stalls", "", "the worker where they do")
	flags.IntVar(&w.StallEvery, "stall-every", 0, "which")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w.Busy = oneslot.WhenBusy(*busy)
	if w.Name != *stalls {
		w.StallEvery = 0
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return w.Run(ctx, os.Getenv("CABRANK_ADDR"), filepath.Join(*records, w.Name))
}
