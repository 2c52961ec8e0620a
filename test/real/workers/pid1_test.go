//go:build (real || soak) && linux

package workers_test

import (
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// In a container cabrank is PID 1, which nobody else is there to help: it reaps
// every orphan, ends on SIGTERM with 0, and leaves nothing (R17, R18).
func TestAsPID1(t *testing.T) {
	worker := append([]string{"sh", "-c", `i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; exec "$0" "$@"`}, harness.FaultWorker(t)...)
	p := harness.StartLine(t, append(harness.PIDNamespace(t), harness.RunLine(t, worker, "--workers", "1")...)...)
	p.WaitLog(harness.Patience, "worker ready")
	c := harness.Cabrank{Process: p}
	harness.CallIo(t.Context(), harness.Dial(t, c.Listening("listening")), "1", 0).WantOK(t)
	first := harness.ChildOf(t, p.PID)
	testkit.Eventually(t, harness.Patience, "no zombie under PID 1", func() bool { return zombiesOf(first) == 0 })
	c.SignalTo(first, syscall.SIGTERM)
	p.WantExit(harness.StopBound, 0)
	p.WaitNoneLeft(harness.Patience)
}
