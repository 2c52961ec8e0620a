//go:build real || soak

package lab_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/test/real/harness"
)

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
			if answer.Code != 0 || len(answer.Workers) != want || answer.Workers["worker-1"] == 0 {
				t.Errorf("%+v, want %d workers", answer, want)
			}
			used := map[string]bool{}
			for _, p := range r.Usage() {
				used[p.Role] = p.CPU > 0
			}
			if !used["gateway"] || !used["worker 1"] || !used["worker 2"] {
				t.Errorf("used: %v", used)
			}
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
