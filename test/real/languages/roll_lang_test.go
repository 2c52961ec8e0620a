//go:build real || soak

package languages_test

import (
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A rolling restart of workers in every language, threaded and asynchronous,
// under calls and streams that never pause: none of them fails, and every worker
// has been replaced at its end.
func TestRollsLoseNoCallInAnyLanguage(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "control.sock")
			c := harness.StartLangCabrank(t, lang, "--workers", "2", "--min-ready", "2", "--transport", "unix", "--control", socket)
			op := harness.NewOperator(t, socket)
			client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
			load := harness.StartLoop(t, 3, harness.Working(client, harness.CallCPUOnce))
			streams := harness.StartLoop(t, 1, harness.Working(client, harness.StreamOnce))
			for range 2 {
				testkit.Must(t, op.Run(2*harness.LangBound, "restart"))
			}
			load.WantNoFailure()
			streams.WantNoFailure()
			state, err := op.Status()
			testkit.Must(t, err)
			if state.Generation != 3 || state.Ready != 2 {
				t.Errorf("generation %d, %d ready; want 3 and 2", state.Generation, state.Ready)
			}
			c.Stop()
		})
	}
}
