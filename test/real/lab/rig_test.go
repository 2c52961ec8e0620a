//go:build real

package lab_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/lab/result"
	"github.com/cabrank/cabrank/internal/lab/rig"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// greeters is an arm of so many workers of the demo.
func greeters(t testing.TB, n int, kind rig.Kind) rig.Spec {
	t.Helper()
	cabrank := harness.CabrankBinary(t)
	spec := rig.Spec{Program: cabrank, Front: rig.Front{Kind: kind}}
	for range n {
		spec.Workers = append(spec.Workers, rig.Worker{Command: []string{cabrank, "demo", "worker"}, Slots: 2})
	}
	return spec
}

// start starts an arm that ends with the test and leaves no process.
func start(t testing.TB, spec rig.Spec) *rig.Rig {
	t.Helper()
	r, err := rig.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		used := r.Usage()
		r.Close()
		for _, p := range used {
			if p.PID != os.Getpid() && harness.Alive(p.PID) {
				t.Errorf("%s (pid %d) is left", p.Role, p.PID)
			}
		}
	})
	return r
}

// dial connects to an arm, with all the addresses that its name has.
func dial(t testing.TB, r *rig.Rig) demopb.GreeterClient {
	t.Helper()
	conn, err := grpc.NewClient(r.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return demopb.NewGreeterClient(conn)
}

// callAll makes calls and counts the answers by worker.
func callAll(t testing.TB, client demopb.GreeterClient, n int) map[string]int {
	t.Helper()
	who := map[string]int{}
	for range n {
		answer, err := client.SayHello(t.Context(), &demopb.HelloRequest{Name: "a"}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		who[answer.GetWorker()]++
	}
	return who
}

// awaitSpread calls until exactly these workers answer.
func awaitSpread(t testing.TB, client demopb.GreeterClient, want ...string) {
	t.Helper()
	var who map[string]int
	testkit.Eventually(t, harness.Patience, fmt.Sprintf("answers from %v alone", want), func() bool {
		who = callAll(t, client, 4*len(want))
		return slices.Equal(slices.Sorted(maps.Keys(who)), want)
	})
}

// Calls reach the workers through each front that needs nothing but cabrank, and what
// the processes have used is told.
func TestFronts(t *testing.T) {
	for kind, want := range map[rig.Kind][]string{
		rig.None:    {"worker-1"},
		rig.DNS:     {"worker-1", "worker-2", "worker-3"},
		rig.Cabrank: {"worker-1", "worker-2", "worker-3"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			r := start(t, greeters(t, 3, kind))
			before := r.Usage()
			awaitSpread(t, dial(t, r), want...)
			used := rig.Between(before, r.Usage())
			roles := []string{"worker 1", "worker 2", "worker 3", "front", "controller"}
			if kind != rig.Cabrank {
				roles = slices.Delete(roles, 3, 4)
			}
			if got := rolesOf(used); !slices.Equal(got, roles) {
				t.Errorf("roles %q, want %q", got, roles)
			}
			for _, p := range used {
				if p.PID <= 0 || p.RSS <= 0 || p.PeakRSS < p.RSS || p.CPU < 0 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

func rolesOf(all []result.Process) (roles []string) {
	for _, p := range all {
		roles = append(roles, p.Role)
	}
	return roles
}

// Cabrank starts workers itself, from the same command.
func TestCabrankStartsWorkers(t *testing.T) {
	spec := greeters(t, 2, rig.Cabrank)
	spec.Front.Starts = true
	r := start(t, spec)
	awaitSpread(t, dial(t, r), "worker-1", "worker-2")
	if err := r.Do(t.Context(), rig.Event{Do: rig.Roll}); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(t.Context(), rig.Event{Do: rig.Stop, Worker: "worker-2", For: time.Millisecond}); err == nil {
		awaitSpread(t, dial(t, r), slices.Sorted(maps.Keys(callAll(t, dial(t, r), 20)))...)
	}
}

// Workers come and go while callers go on.
func TestMembers(t *testing.T) {
	for _, kind := range []rig.Kind{rig.DNS, rig.Cabrank} {
		t.Run(string(kind), func(t *testing.T) {
			spec := greeters(t, 3, kind)
			spec.Workers[2].Later = true
			r := start(t, spec)
			client := dial(t, r)
			awaitSpread(t, client, "worker-1", "worker-2")
			do(t, r, rig.Event{Do: rig.Kill, Worker: "worker-1", For: time.Millisecond})
			do(t, r, rig.Event{Do: rig.Add})
			if err := r.Do(t.Context(), rig.Event{Do: rig.Add}); err == nil || err.Error() != "all 3 workers are there: none can be added" {
				t.Errorf("one more: %v", err)
			}
			if kind == rig.DNS {
				client = dial(t, r) // grpc-go asks again after 30 s
			}
			awaitSpread(t, client, "worker-1", "worker-2", "worker-3")
			do(t, r, rig.Event{Do: rig.Remove, Worker: "worker-2"})
			if kind == rig.DNS {
				client = dial(t, r)
			}
			awaitSpread(t, client, "worker-1", "worker-3")
			do(t, r, rig.Event{Do: rig.Roll})
			awaitSpread(t, dial(t, r), "worker-1", "worker-3")
		})
	}
}

func do(t testing.TB, r *rig.Rig, e rig.Event) {
	t.Helper()
	if err := r.Do(t.Context(), e); err != nil {
		t.Fatalf("%v: %v", e, err)
	}
}

// A worker that stands still answers when its time is over, and not before.
func TestStop(t *testing.T) {
	const still = 300 * time.Millisecond
	r := start(t, greeters(t, 1, rig.None))
	client := dial(t, r)
	callAll(t, client, 1)
	pid := r.Usage()[0].PID
	over := make(chan error, 1)
	go func() { over <- r.Do(t.Context(), rig.Event{Do: rig.Stop, Worker: "worker-1", For: still}) }()
	testkit.Eventually(t, harness.Patience, "the worker stands still", func() bool { return harness.StateOf(pid) == 'T' })
	began := time.Now()
	callAll(t, client, 1)
	if took := time.Since(began); took < still/2 {
		t.Errorf("an answer after %v", took)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

// What cannot be is told in one line, and leaves nothing.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		change     func(*rig.Spec)
	}{
		{"no such program", `worker-1 cannot be started: exec: "no-such-worker": executable file not found in $PATH`, func(s *rig.Spec) {
			s.Workers[0].Command = []string{"no-such-worker"}
		}},
		{"ends", "worker-1 has ended before it answered: exit status 3; it wrote: first | out of luck", func(s *rig.Spec) {
			s.Workers[0].Command = []string{"sh", "-c", "echo first; echo out of luck >&2; exit 3"}
		}},
		{"mute", "worker-1 does not answer at 127.0.0.1:", func(s *rig.Spec) {
			s.Workers[0].Command, s.Ready = []string{"sleep", "60"}, 300*time.Millisecond
		}},
		{"flag", `cabrank has ended before it answered: exit status 2; it wrote: `, func(s *rig.Spec) {
			s.Front = rig.Front{Kind: rig.Cabrank, Args: []string{"--no-such-flag"}}
		}},
		{"front", "front \"toll\": there are ", func(s *rig.Spec) { s.Front.Kind = "toll" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := greeters(t, 2, rig.None)
			tc.change(&spec)
			r, err := rig.Start(t.Context(), spec)
			if err == nil {
				r.Close()
				t.Fatal("it was started")
			}
			if got := err.Error(); !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// When the process is killed that has started an arm, no process of it stays, and the
// next arm removes its files and groups.
func TestKilledController(t *testing.T) {
	tmp := harness.ShortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	controller := exec.Command(harness.OwnBinary(t), holdRole, harness.CabrankBinary(t))
	controller.Stderr = os.Stderr
	out, err := controller.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	controller.Process.Signal(syscall.SIGKILL)
	_ = controller.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var used []result.Process
	if err := json.Unmarshal(line, &used); err != nil || len(used) != 4 {
		t.Fatalf("%v, %+v", err, used)
	}
	testkit.Eventually(t, harness.Patience, "all processes of the arm have ended", func() bool {
		return !slices.ContainsFunc(used, func(p result.Process) bool { return syscall.Kill(-p.PID, 0) == nil })
	})
	r, err := rig.Start(t.Context(), greeters(t, 1, rig.None))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, left := range append(ourGroups(t), ourFolders(t)...) {
		if strings.Contains(left, fmt.Sprintf("-%d-", controller.Process.Pid)) || strings.HasPrefix(left, tmp) {
			t.Errorf("left %s", left)
		}
	}
}

// ourFolders lists the folders of arms that there are.
func ourFolders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "cabrank-lab-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
