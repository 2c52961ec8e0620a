//go:build real || soak

package lab_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
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
	testkit.Want(t, len(done.Blocks) == len(s.Arms) && len(done.LeftOut) == 0,
		"%d blocks of %d arms, left out: %v", len(done.Blocks), len(s.Arms), done.LeftOut)
	for i := range done.Blocks {
		b := &done.Blocks[i]
		testkit.Want(t, b.Figures["rate"] != 0 && b.Figures["errors"] == 0, "%s: %v, %v", b.Arm, b.Figures, b.Errors)
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
	testkit.Want(t, err == nil && string(want) == string(out), "%v, it says\n%s", err, out)
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
	_, err = os.Stat(filepath.Join(folder, "server-stream-TIME.json"))
	testkit.Want(t, err == nil, "%v", err)
}

// fibonacci is an arm of so many Python servers, called by their HTTP front.
func fibonacci(t testing.TB, n int, kind scenario.FrontKind) rig.Spec {
	t.Helper()
	root := harness.Root(t)
	python := harness.Built(t, filepath.Join(root, ".deps", "fibonacci", "bin", "python3"), "scripts/install-deps.sh workers")
	program := func(name string) []string {
		return []string{python, filepath.Join(root, "examples", "fibonacci", name)}
	}
	const quiet = "PYTHONDONTWRITEBYTECODE=1"
	spec := rig.Spec{Programs: programs(t), Front: scenario.Front{Kind: kind}}
	for range n {
		spec.Workers = append(spec.Workers, rig.Worker{Command: program("server.py"), Env: []string{"METRICS_PORT=0", quiet}})
	}
	spec.Gateway = scenario.Gateway{
		Command: program("front.py"), Env: []string{"TARGET={target}", "GRPC_SERVER_SVC_TYPE=headless", "WORKERS=3", quiet},
	}
	return spec
}

// A gateway calls what callers would call, is told apart in what is used, and ends with the arm.
func TestGateway(t *testing.T) {
	for _, kind := range []scenario.FrontKind{scenario.FrontNone, scenario.FrontDNS, scenario.FrontCabrank} {
		t.Run(string(kind), func(t *testing.T) {
			r := start(t, fibonacci(t, 2, kind))
			client, err := caller.NewGateway(caller.GatewayOptions{
				Address: r.Target(), Path: "/fibonacci/random?iterations=100&output=false&fibo_start=500&fibo_end=500", Ready: "/fibonacci",
			})
			testkit.Must(t, err)
			defer client.Close()
			testkit.Must(t, client.Ready(t.Context()))
			answer := client.Call(t.Context(), traffic.Call{})
			want := 2
			if kind == scenario.FrontNone {
				want = 1
			}
			testkit.Want(t, answer.Code == 0 && len(answer.Workers) == want && answer.Workers["worker-1"] != 0,
				"%+v, want %d workers", answer, want)
			used := map[string]bool{}
			for _, p := range r.Usage() {
				used[p.Role] = p.CPU > 0
			}
			testkit.Want(t, used["gateway"] && used["worker 1"] && used["worker 2"], "used: %v", used)
		})
	}
}

// A gateway that cannot start is told in a line, with what it has said.
func TestGatewayEnds(t *testing.T) {
	spec := fibonacci(t, 1, scenario.FrontNone)
	spec.Gateway.Env = append(spec.Gateway.Env, "WORKERS=many")
	_, err := rig.Start(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "the gateway has ended before it answered") || !strings.Contains(err.Error(), "WORKERS must be") {
		t.Error(err)
	}
}
