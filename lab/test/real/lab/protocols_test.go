//go:build real || soak

package lab_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Each way of the scenario protocols is called for a second, and every call is answered.
func TestProtocols(t *testing.T) {
	protocolsTable(t)
	t.Chdir(harness.Root(t))
	harness.Built(t, "examples/nestjs/dist/connect.js", "scripts/install-deps.sh workers")
	s, err := scenario.Builtin("protocols", nil)
	testkit.Must(t, err)
	s.Loads = s.Loads[:1]
	eachOnce(t, s)
}

// eachOnce measures each arm at each load for a second, and wants every call answered.
func eachOnce(t *testing.T, s *scenario.Scenario) {
	t.Helper()
	for i := range s.Loads {
		s.Loads[i].Options.Warmup, s.Loads[i].Options.Duration = 0, time.Second
	}
	done, _ := tryOut(t, s)
	if len(done.Blocks) != len(s.Arms) || len(done.LeftOut) > 0 {
		t.Errorf("%d blocks of %d arms, left out: %v", len(done.Blocks), len(s.Arms), done.LeftOut)
	}
	for i := range done.Blocks {
		if b := &done.Blocks[i]; b.Figures["rate"] == 0 || b.Figures["errors"] > 0 {
			t.Errorf("%s: %v, %v", b.Arm, b.Figures, b.Errors)
		}
	}
}

// protocolsTable holds that the script has the table and the keys of the suite that it is after, and fails by its
// thresholds.
func protocolsTable(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	testkit.Must(t, os.CopyFS(folder, os.DirFS("testdata/protocols")))
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(harness.Root(t), "bench", "protocols.js"), folder, "TIME", "all", "5")
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, %v", code, err)
	}
	want, err := os.ReadFile("testdata/protocols/summary.txt")
	if err != nil || string(want) != string(out) {
		t.Errorf("%v, it says\n%s", err, out)
	}
	var unary struct {
		Metrics map[string]struct {
			Latency   map[string]float64 `json:"latency"`
			ErrorRate float64            `json:"errorRate"`
		} `json:"metrics"`
		Iterations int `json:"iterations"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "unary-TIME.json"))
	if err == nil {
		err = json.Unmarshal(text, &unary)
	}
	if m := unary.Metrics["grpcConnect"]; err != nil || unary.Iterations != 3000 || m.ErrorRate != 0.02 || m.Latency["p99"] != 0.25 || m.Latency["count"] != 1000 {
		t.Errorf("%v, %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(folder, "server-stream-TIME.json")); err != nil {
		t.Error(err)
	}
}
