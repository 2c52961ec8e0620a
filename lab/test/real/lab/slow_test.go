//go:build real || soak

package lab_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/work"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The worker of the lab is slow when it is told, whoever has started it.
func TestSlow(t *testing.T) {
	const slower = 300 * time.Millisecond
	for _, starts := range []bool{false, true} {
		spec := greeters(t, 1, scenario.FrontCabrank)
		spec.Front.Starts = starts
		spec.Workers[0].Command = []string{spec.Programs.Lab, "worker", "--listen", "{addr}", "--name", "{worker}", "--slots", "{slots}", "--full", "queue", "--slow-by", slower.String()}
		r := start(t, spec)
		client := work.NewWorkerClient(dial(t, r))
		takes := func() time.Duration {
			began := time.Now()
			if _, err := client.Work(t.Context(), &work.WorkRequest{}); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		takes()
		do(t, r, scenario.Event{Do: scenario.DoSlow})
		testkit.Eventually(t, harness.Patience, "calls are slow", func() bool { return takes() >= slower })
		do(t, r, scenario.Event{Do: scenario.DoSlow, For: slower}) // two signals at once may change places
		testkit.Eventually(t, harness.Patience, "calls are fast again", func() bool { return takes() < slower })
	}
}
