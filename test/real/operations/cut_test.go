//go:build real || soak

package operations_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/test/real/harness"
)

// shortDrain is a drain_timeout that the calls of these tests outlive.
const shortDrain = "300ms"

// Calls that outlive drain_timeout are cut. Whoever has the workers replaced
// learns how many: a script by the exit status, which is one of its own.
func TestCommandsSayHowManyCallsTheyCut(t *testing.T) {
	t.Setenv("CABRANK_STREAM_SLOTS", "10") // all
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2", "--drain-timeout", shortDrain).AwaitReady(2)
	c.WantCut(c.LongCalls(t.Context(), 3), 3, 3, "restart")
	c.WantCut(c.LongCalls(t.Context(), 2), 2, 3, "restart", "--json")
	c.WantCut(c.LongCalls(t.Context(), 2), 2, 0, "restart", "--force") // as asked for
	c.Must("scale", "1")
	c.WantCut(c.LongCalls(t.Context(), 2), 2, 3, "drain", c.Status().Workers[0].Name)
	c.Must("scale", "2")
	ended := c.LongCalls(t.Context(), 10)
	c.WantCut(ended, 5, 3, "scale", "1")
	c.Signal(syscall.SIGHUP)
	c.Wait(harness.Patience, "the end of the restart by SIGHUP", func() bool {
		lines := c.LogLines("workers replaced")
		return len(lines) > 0 && lines[len(lines)-1].Text("calls_cut") == "5" && lines[len(lines)-1]["level"] == "WARN"
	})
	if text := c.Must("status"); !strings.Contains(text, "the last roll cut 5 calls") {
		t.Errorf("the status says nothing of it:\n%s", text)
	}
	if out := c.Must("restart"); strings.Contains(out, "cut") {
		t.Errorf("without calls:\n%s", out)
	}
	c.Stop()
}

// The same for a stop, which waits no longer either.
func TestStopSaysHowManyCallsItCuts(t *testing.T) {
	for _, test := range []struct {
		args   []string
		status int
	}{{[]string{"stop"}, 3}, {[]string{"stop", "--now"}, 0}} {
		c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", shortDrain).AwaitReady(1)
		ended := c.LongCalls(t.Context(), 2)
		c.Ended = true
		p := c.Command(test.args...)
		if code := p.ExitCode(harness.Patience); code != test.status || !strings.HasSuffix(strings.TrimSpace(p.Output()), ", 2 calls were cut") {
			t.Errorf("%v: exit code %d, %s%s", test.args, code, p.Output(), p.Log())
		}
		for range 2 {
			harness.WantStatus(t, (<-ended).Err, codes.Unavailable, "cabrank: shutting down")
		}
	}
}

// And for an upstream.
func TestDrainOfAnUpstreamSaysHowManyCallsItCuts(t *testing.T) {
	inner := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1").Booted(1)
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	c := harness.Control(harness.StartCabrank(t, "--upstream", inner.Addr, "--control", socket, "--drain-timeout", shortDrain), socket)
	ended := c.BeginLong(t.Context(), 2)
	inner.WaitTaken(2)
	c.WantCut(ended, 2, 3, "drain", inner.Addr)
	c.Stop()
}

// An upgrade returns before the old process has drained: that one's log says it.
func TestUpgradeLogsHowManyCallsItCuts(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", shortDrain).AwaitReady(1)
	ended := c.LongCalls(t.Context(), 2)
	c.Must("upgrade")
	for range 2 {
		harness.WantStatus(t, (<-ended).Err, codes.Unavailable, "cabrank: shutting down")
	}
	c.WantExit(harness.Patience, 0)
	if lines := c.LogLines("calls were cut"); len(lines) != 1 || lines[0].Text("calls") != "2" {
		t.Errorf("%d lines: %v", len(lines), lines)
	}
	c.Ended = true
	c.Must("stop")
}
