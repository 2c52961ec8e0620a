//go:build soak

package operations_test

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The slots of a worker that has never been ready are 0, and not unknown: what scales by
// them must see something.
func TestSlotsBeforeAWorkerIsReady(t *testing.T) {
	c := harness.StartControlled(t, []string{"sleep", "1000"}, "--workers", "1")
	c.Await("the boot", func(s *harness.OperatorStatus) bool { return s.State == "starting" && len(s.Workers) == 1 })
	page := c.MetricsText()
	for _, name := range []string{"slots", "slots_usable", "in_flight", "ghosts"} {
		testkit.Want(t, strings.Contains(page, "\ncabrank_"+name+`{worker="worker-1"} 0`+"\n"), "cabrank_%s has no value", name)
	}
}
