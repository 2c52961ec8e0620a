//go:build soak

package load_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// installed is what other people's tools are installed by.
const installed = "scripts/install-deps.sh bench"

// ghz and the lab see the same median where they do the same: ten callers who wait for
// answers, over one connection.
func TestGhzAgrees(t *testing.T) {
	const rounds, most = 3, 0.2
	bare := harness.StartWorkerProcess(t, nil, []string{harness.CabrankBinary(t), "demo", "worker", "--work", "1ms"})
	behind := harness.StartCabrank(t, "--workers", "1", "--min-ready", "1", "--slots", "20", "--", harness.CabrankBinary(t), "demo", "worker", "--work", "1ms")
	behind.WaitReady(harness.LangBound)
	for name, address := range map[string]string{"a bare server": bare, "behind cabrank": behind.Addr} {
		var theirs, ours []time.Duration
		for range rounds {
			theirs = append(theirs, medianByGhz(t, address))
			ours = append(ours, medianByLab(t, address))
		}
		slices.Sort(theirs)
		slices.Sort(ours)
		ratio := float64(theirs[rounds/2]) / float64(ours[rounds/2])
		t.Logf("%s: medians %v by ghz, %v by the lab: ratio %.2f", name, theirs, ours, ratio)
		testkit.Want(t, ratio >= 1-most && ratio <= 1/(1-most), "%s: ghz says %v, the lab %v", name, theirs[rounds/2], ours[rounds/2])
	}
}

func medianByGhz(t *testing.T, address string) time.Duration {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Built(t, filepath.Join(harness.Root(t), ".tools", "ghz"), installed),
		"--insecure", "--call", sayHello, "--data", `{"name":"you"}`, "--concurrency", "10", "--connections", "1",
		"--duration", "3s", "--duration-stop", "wait", "--format", "json", address)
	out, err := cmd.Output()
	testkit.Need(t, err == nil, "ghz: %v\n%s", err, out)
	var report struct {
		LatencyDistribution []struct {
			Percentage int           `json:"percentage"`
			Latency    time.Duration `json:"latency"`
		} `json:"latencyDistribution"`
	}
	testkit.Must(t, json.Unmarshal(out, &report))
	for _, at := range report.LatencyDistribution {
		if at.Percentage == 50 {
			return at.Latency
		}
	}
	t.Fatalf("ghz says no median: %s", out)
	return 0
}

func medianByLab(t *testing.T, address string) time.Duration {
	t.Helper()
	folder := t.TempDir()
	load := startLoad(t, address, sayHello, "--data", `{"name":"you"}`, "--callers", "10", "--duration", "3s", "--out", folder)
	load.WantExit(harness.Patience, 0)
	return resultIn(t, folder).Record.Calls.Answered.At(0.5)
}

// The scripts for ghz print a table for each server, and those for k6 are what k6's types
// say; k6 itself is not run.
func TestScriptsOfOtherTools(t *testing.T) {
	root := harness.Root(t)
	harness.Built(t, filepath.Join(root, ".tools", "ghz"), installed)
	first := testkit.FreePorts(t, 2)
	env := []string{"SKIP_BUILD=1", "CONNECT_PORT=" + strconv.Itoa(first), "GRPC_PORT=" + strconv.Itoa(first+1), "RESULTS=" + t.TempDir(), "TOTAL_REQUESTS=200"}
	for script, want := range map[string]string{"unary.sh": "0.00 % errors", "streams.sh": "200 calls, 0.00 % errors"} {
		p := harness.StartProcess(t, env, filepath.Join(root, "bench", "ghz", script), "quick")
		code := p.ExitCode(2 * harness.LangBound)
		testkit.Want(t, code == 0 && strings.Count(p.Output(), want) == 2, "%s: exit code %d\n%s%s", script, code, p.Output(), p.Log())
	}
	tsc := harness.Built(t, filepath.Join(root, "bench", "k6", "node_modules", ".bin", "tsc"), installed)
	out, err := exec.CommandContext(t.Context(), tsc, "-p", filepath.Join(root, "bench", "k6")).CombinedOutput()
	testkit.Want(t, err == nil, "%v\n%s", err, out)
}
