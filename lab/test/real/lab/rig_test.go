//go:build real || soak

package lab_test

import (
	"bufio"
	"context"
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

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/proxies"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

// greeters is an arm of so many workers of the demo.
func greeters(t testing.TB, n int, kind scenario.FrontKind) rig.Spec {
	t.Helper()
	cabrank := harness.CabrankBinary(t)
	spec := rig.Spec{Programs: programs(t), Front: scenario.Front{Kind: kind}}
	for range n {
		spec.Workers = append(spec.Workers, rig.Worker{Command: []string{cabrank, "demo", "worker"}, Slots: 2})
	}
	return spec
}

// start starts an arm that ends with the test and leaves no process.
func start(t testing.TB, spec rig.Spec) *rig.Rig {
	t.Helper()
	r, err := rig.Start(t.Context(), spec)
	testkit.Must(t, err)
	t.Cleanup(func() {
		used := r.Usage()
		r.Close()
		for _, p := range used {
			testkit.Want(t, p.PID == os.Getpid() || !harness.Alive(p.PID), "%s (pid %d) is left", p.Role, p.PID)
		}
	})
	return r
}

// dial connects to an arm, with all the addresses that its name has.
func dial(t testing.TB, r *rig.Rig) *grpc.ClientConn {
	t.Helper()
	return harness.Dial(t, r.Target(), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
}

// callOnce returns who has answered.
func callOnce(t testing.TB, conn *grpc.ClientConn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	answer, err := demopb.NewGreeterClient(conn).SayHello(ctx, &demopb.HelloRequest{Name: "a"}, grpc.WaitForReady(true))
	testkit.Must(t, err)
	return answer.GetWorker()
}

// awaitSpread calls until exactly these workers answer, over one connection, or over
// new ones where connections are what is balanced.
func awaitSpread(t testing.TB, r *rig.Rig, kind scenario.FrontKind, want ...string) {
	t.Helper()
	conn := dial(t, r)
	testkit.Eventually(t, harness.Patience, fmt.Sprintf("answers from %v alone", want), func() bool {
		who := map[string]bool{}
		for range 4 * len(want) {
			if kind == scenario.FrontHAProxyTCP {
				conn = dial(t, r)
			}
			who[callOnce(t, conn)] = true
		}
		return slices.Equal(slices.Sorted(maps.Keys(who)), want)
	})
}

// need skips a test of a proxy that is not installed; those that measure have it.
func need(t testing.TB, kind scenario.FrontKind) {
	t.Helper()
	if proxy, other := proxies.Find(string(kind)); other {
		if _, err := proxy.Look(); err != nil {
			t.Skip(err)
		}
	}
}

// Calls reach the workers through each front, and what the processes have used is told.
func TestFronts(t *testing.T) {
	for _, kind := range []scenario.FrontKind{ // not dnat, which nobody calls from here: TestDNAT
		scenario.FrontNone, scenario.FrontDNS, scenario.FrontCabrank, scenario.FrontHAProxyTCP, scenario.FrontHAProxy, scenario.FrontEnvoy, scenario.FrontNginx, scenario.FrontNghttpx,
	} {
		t.Run(string(kind), func(t *testing.T) {
			need(t, kind)
			want := []string{"worker-1", "worker-2", "worker-3"}
			roles := []string{"worker 1", "worker 2", "worker 3", "front", "controller"}
			if kind == scenario.FrontNone {
				want = want[:1]
			}
			if kind == scenario.FrontNone || kind == scenario.FrontDNS {
				roles = slices.Delete(roles, 3, 4)
			}
			r := start(t, greeters(t, 3, kind))
			before := r.Usage()
			awaitSpread(t, r, kind, want...)
			used := rig.Between(before, r.Usage())
			testkit.EqualList(t, rolesOf(used), roles, "roles")
			for _, p := range used {
				testkit.Want(t, p.PID > 0 && p.RSS > 0 && p.PeakRSS >= p.RSS && p.CPU >= 0, "%+v", p)
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
	spec := greeters(t, 2, scenario.FrontCabrank)
	spec.Front.Starts, spec.Front.Policy = true, "late_binding"
	r := start(t, spec)
	awaitSpread(t, r, scenario.FrontCabrank, "worker-1", "worker-2")
	do(t, r, scenario.Event{Do: scenario.DoStop, Worker: 2, For: time.Millisecond})
	do(t, r, scenario.Event{Do: scenario.DoKill, Worker: 2})
	awaitSpread(t, r, scenario.FrontCabrank, "worker-1", "worker-2")
	do(t, r, scenario.Event{Do: scenario.DoRoll})
	if _, err := r.Do(t.Context(), scenario.Event{Do: scenario.DoRemove, Worker: 2}); err == nil {
		awaitSpread(t, r, scenario.FrontCabrank, callOnce(t, dial(t, r)))
	}
}

// Workers come and go while callers go on.
func TestMembers(t *testing.T) {
	for _, kind := range []scenario.FrontKind{scenario.FrontDNS, scenario.FrontCabrank, scenario.FrontHAProxyTCP, scenario.FrontHAProxy} {
		t.Run(string(kind), func(t *testing.T) {
			need(t, kind)
			spec := greeters(t, 3, kind)
			spec.Workers[2].Later = true
			r := start(t, spec)
			awaitSpread(t, r, kind, "worker-1", "worker-2")
			do(t, r, scenario.Event{Do: scenario.DoAdd})
			_, err := r.Do(t.Context(), scenario.Event{Do: scenario.DoAdd})
			testkit.RefusedBy(t, err, "all 3 workers are there: none can be added")
			awaitSpread(t, r, kind, "worker-1", "worker-2", "worker-3")
			do(t, r, scenario.Event{Do: scenario.DoRemove, Worker: 2})
			awaitSpread(t, r, kind, "worker-1", "worker-3")
			do(t, r, scenario.Event{Do: scenario.DoRoll})
			awaitSpread(t, r, kind, "worker-1", "worker-3")
		})
	}
}

func do(t testing.TB, r *rig.Rig, e scenario.Event) {
	t.Helper()
	_, err := r.Do(t.Context(), e)
	testkit.Need(t, err == nil, "%v: %v", e, err)
}

// A worker that stands still answers when its time is over, and not before.
func TestStop(t *testing.T) {
	const still = time.Second
	r := start(t, greeters(t, 1, scenario.FrontNone))
	conn := dial(t, r)
	callOnce(t, conn)
	pid := r.Usage()[0].PID
	began, over := time.Now(), make(chan error, 1)
	go func() {
		_, err := r.Do(t.Context(), scenario.Event{Do: scenario.DoStop, For: still})
		over <- err
	}()
	testkit.Eventually(t, harness.Patience, "the worker stands still", func() bool { return harness.StateOf(pid) == 'T' })
	callOnce(t, conn)
	took := time.Since(began)
	testkit.Want(t, took >= still, "an answer after %v", took)
	testkit.Must(t, <-over)
}

// A worker that was killed is there again when its time has come.
func TestKill(t *testing.T) {
	r := start(t, greeters(t, 2, scenario.FrontCabrank))
	before := r.Usage()
	do(t, r, scenario.Event{Do: scenario.DoKill, Worker: 1, For: time.Millisecond})
	awaitSpread(t, r, scenario.FrontCabrank, "worker-1", "worker-2")
	if after := r.Usage(); after[0].PID == before[0].PID || after[1].PID != before[1].PID || after[0].CPU < before[0].CPU {
		t.Errorf("before %+v, after %+v", before[:2], after[:2])
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
			s.Front = scenario.Front{Kind: scenario.FrontCabrank, Flags: []string{"--no-such-flag"}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := greeters(t, 2, scenario.FrontNone)
			tc.change(&spec)
			r, err := rig.Start(t.Context(), spec)
			if err == nil {
				r.Close()
				t.Fatal("it was started")
			}
			testkit.Refused(t, err, tc.want)
		})
	}
}

// When the process is killed that has started an arm, no process of it stays, and the
// next arm removes its files and groups.
func TestKilledController(t *testing.T) {
	tmp := harness.ShortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	controller := exec.Command(harness.OwnBinary(t), holdRole, harness.CabrankBinary(t), harness.LabBinary(t))
	controller.Stderr = os.Stderr
	out, err := controller.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, controller.Start())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	controller.Process.Signal(syscall.SIGKILL)
	_ = controller.Wait()
	testkit.Must(t, err)
	var used []result.Process
	err = json.Unmarshal(line, &used)
	testkit.Need(t, err == nil && len(used) == 4, "%v, %+v", err, used)
	testkit.Eventually(t, harness.Patience, "all processes of the arm have ended", func() bool {
		return !slices.ContainsFunc(used, func(p result.Process) bool { return syscall.Kill(-p.PID, 0) == nil })
	})
	r, err := rig.Start(t.Context(), greeters(t, 1, scenario.FrontNone))
	testkit.Must(t, err)
	r.Close()
	for _, left := range append(ourGroups(t), ourFolders(t)...) {
		testkit.Want(t, !strings.Contains(left, fmt.Sprintf("-%d-", controller.Process.Pid)) && !strings.HasPrefix(left, tmp),
			"left %s", left)
	}
}

// ourFolders lists the folders of arms that there are.
func ourFolders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "cabrank-lab-*"))
	testkit.Must(t, err)
	return found
}
