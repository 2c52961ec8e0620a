//go:build real || soak

package operations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A restart replaces every worker and loses no call. It says at once how long it
// can take, then each step, and returns when all is done.
func TestRestartUnderLoad(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "3", "--slots", "2").AwaitReady(3)
	before := pidsOf(c)
	load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
	load.WaitAnswered(t, "", 10)
	said := strings.Split(strings.TrimSpace(c.Must("restart")), "\n")
	load.WaitAnswered(t, "", 10)
	all := load.WantNoFailure(t)
	testkit.Want(t, regexp.MustCompile(`^0/3 replacing workers, at most \d`).MatchString(said[0]), "the first line is %q", said[0])
	if last := said[len(said)-1]; !strings.HasPrefix(last, "restart done in ") || said[len(said)-2] != "3/3 replaced" {
		t.Errorf("the last lines are %q", said[len(said)-2:])
	}
	s := c.Status()
	testkit.Want(t, s.Generation == 2 && s.Ready == 3 && len(s.Workers) == 3, "afterwards: %+v", s)
	for _, pid := range before {
		testkit.Want(t, syscall.Kill(pid, 0) != nil, "process %d is still there", pid)
	}
	c.Stop()
	c.WantTakenOnce(all)
}

// pidsOf are the processes of all workers.
func pidsOf(c *harness.Controlled) (pids []int) {
	for _, w := range c.Status().Workers {
		pids = append(pids, w.PID)
	}
	return pids
}

// A version that never becomes ready stops the restart: the reason, exit code 1,
// the old workers serve, and the next restart runs their command again.
func TestRestartWithABadVersion(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2", "--slots", "4").AwaitReady(2)
	before := pidsOf(c)
	load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
	for command, want := range map[string]string{"exit 7": "exit status 7", "exec /no/such/program": "exit status"} {
		c.Command("restart", "--", "sh", "-c", command).WantExit(harness.Patience, 1, "cabrank: the new workers do not get ready, the others go on: ", want)
	}
	c.Command("restart", "--", "/no/such/program").WantExit(harness.Patience, 1, "no such file or directory")
	testkit.Says(t, c.Must("status"), "the last roll stopped ")
	c.AwaitReady(2)
	load.WaitAnswered(t, "", 10)
	after := pidsOf(c)
	testkit.Want(t, slices.Equal(before, after), "workers %v became %v", before, after)
	c.Must("restart")
	load.WantNoFailure(t)
}

// A second restart takes over, with its own command; who waited for the first
// is told so.
func TestSecondRestartTakesOver(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2").AwaitReady(2)
	first := c.Command("restart", "--", "sleep", "1000")
	c.Await("the first restart", func(s *harness.OperatorStatus) bool { return s.Roll != nil && s.Roll.Running })
	c.Must(append([]string{"restart", "--"}, harness.FaultWorker(t, "-say", "second")...)...)
	first.WantExit(harness.Patience, 1, "another restart took over")
	second := func(n int) func() bool { return func() bool { return strings.Count(c.Output(), "second") >= n } }
	c.Wait(harness.Patience, "two workers that run the second command", second(2))
	// Its command stays.
	c.Must("restart")
	c.Wait(harness.Patience, "two more of them", second(4))
}

// A command with which no restart has ended well is forgotten, also if it came with
// another restart than the one that failed.
func TestFailedCommandIsForgotten(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1", "--boot-timeout", "3s").AwaitReady(1)
	first := c.Command("restart", "--", "sleep", "1000")
	c.Await("the first restart", func(s *harness.OperatorStatus) bool { return s.Roll != nil && s.Roll.Running })
	c.Command("restart").WantExit(harness.Patience, 1, "boot timeout")
	first.ExitCode(harness.Patience)
	c.Must("restart")
}

// A worker that only crashes can be scaled away.
func TestScaleAwayFromACrashLoop(t *testing.T) {
	sick := append([]string{"sh", "-c", `[ "$CABRANK_WORKER_INDEX" = 1 ] && exit 7; exec "$0" "$@"`}, harness.FaultWorker(t)...)
	c := harness.StartControlled(t, sick, "--workers", "2")
	c.Await("the crash loop", func(s *harness.OperatorStatus) bool {
		return s.Ready == 1 && len(s.Workers) == 2 && s.Workers[1].State == "crash loop"
	})
	c.Must("scale", "1")
}

// --force does not wait for calls: they are told why.
func TestForcedRestart(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", "10m").AwaitReady(1)
	long := c.LongCalls(t.Context(), 1)
	c.Must("restart", "--force")
	harness.WantStatus(t, (<-long).Err, codes.Unavailable, "cabrank: worker draining")
}

// Who does not want to wait any longer leaves; the restart goes on, also when
// its client dies.
func TestInterruptedRestartGoesOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", "10m").AwaitReady(1)
			ctx, cancel := context.WithCancel(t.Context())
			long := c.LongCalls(ctx, 1)
			client := c.Command("restart")
			client.Wait(harness.Patience, "the drain", func() bool { return strings.Contains(client.Output(), "draining worker-1 (1 call)") })
			client.Signal(sig)
			code := client.ExitCode(harness.Patience)
			if sig == syscall.SIGINT && (code != 1 || !strings.Contains(client.Log(), "the restart goes on")) {
				t.Errorf("exit code %d, %s", code, client.Log())
			}
			cancel()
			<-long
			c.Await("the end of the restart", func(s *harness.OperatorStatus) bool { return s.Generation == 2 && s.Ready == 1 && len(s.Workers) == 1 })
		})
	}
}

// SIGTERM wins over a restart: who waits for that is told, and cabrank ends with 0.
func TestStopWinsOverARestart(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2").AwaitReady(2)
	client := c.Command("restart", "--", "sleep", "1000")
	c.Await("the restart", func(s *harness.OperatorStatus) bool { return s.Roll != nil && s.Roll.Running })
	c.Stop()
	code := client.ExitCode(harness.Patience)
	testkit.Want(t, code == 1 && client.Log() == "cabrank: cabrank is stopping\n", "the restart: exit code %d, %s", code, client.Log())
}

// Up, down, and one worker by its name, under load.
func TestScaleAndDrain(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2", "--slots", "2").AwaitReady(2)
	load := harness.StartLoad(t, c.Addr, 3, harness.ShortWork)
	for _, n := range []int{5, 1, 3} {
		c.Must("scale", fmt.Sprint(n))
		s := c.Status()
		testkit.Want(t, s.Ready == n && s.Wanted == n && len(s.Workers) == n, "scale %d: %+v", n, s)
	}
	name := c.Status().Workers[0].Name
	c.Must("drain", name)
	c.AwaitReady(3)
	if text := c.Must("scale", "auto"); !strings.Contains(text, "to the number in the configuration: workers.count has no bounds") || c.Status().Wanted != 2 {
		t.Errorf("scale auto of a fixed number: %s, %+v", text, c.Status())
	}
	c.Must("scale", "3")
	for args, says := range map[string]string{
		"drain worker-99":        "there is no worker or upstream \"worker-99\"; there are: worker-",
		"scale 100000":           "there can be 1 to ",
		"scale 0":                "is no number of workers",
		"drain --undo " + name:   "",
		"drain --force --undo x": "--undo goes without --force",
	} {
		c.Command(strings.Fields(args)...).WantRefusal(2, says)
	}
	load.WantNoFailure(t)
	c.Stop()
}

// An upstream is taken out and given back without losing a call.
func TestDrainOfAnUpstream(t *testing.T) {
	var behind []*harness.Cabrank
	for range 2 {
		inner := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1").Booted(1)
		behind = append(behind, inner)
	}
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	c := harness.Control(harness.StartCabrank(t, "--upstream", behind[0].Addr+","+behind[1].Addr, "--control", socket), socket)
	states := func(want ...string) func(*harness.OperatorStatus) bool {
		return func(s *harness.OperatorStatus) bool {
			got := map[string]string{}
			for _, u := range s.Upstreams {
				got[u.Address] = u.State
			}
			return got[behind[0].Addr] == want[0] && got[behind[1].Addr] == want[1]
		}
	}
	c.Await("both upstreams", states("ready", "ready"))
	load := harness.StartLoad(t, c.Addr, 3, harness.ShortWork)
	behind[0].WaitTaken(5)
	c.Must("drain", behind[0].Addr)
	if s := c.Status(); !states("drained", "ready")(s) {
		t.Errorf("drained: %+v", s)
	}
	served := func() (n uint64) {
		var s struct {
			Upstreams []struct {
				Address string `json:"address"`
				Served  uint64 `json:"served"`
			} `json:"upstreams"`
		}
		testkit.Must(t, json.Unmarshal([]byte(c.Must("status", "--json")), &s))
		for _, u := range s.Upstreams {
			if u.Address == behind[0].Addr {
				n = u.Served
			}
		}
		return n
	}
	before := served()
	load.WaitAnswered(t, "", 20)
	testkit.Equal(t, served(), before, "calls of a drained upstream")
	c.Must("drain", "--undo", behind[0].Addr)
	c.Await("both upstreams again", states("ready", "ready"))
	c.Wait(harness.Patience, "calls at the upstream that is back", func() bool { return served() > before })
	load.WantNoFailure(t)
	c.Command("restart").WantExit(harness.Patience, 2, "only upstreams")
	c.Stop()
}

// The status shows a crash loop with its last exit; the commands that cannot get
// anywhere say so.
func TestStatusOfACrashLoop(t *testing.T) {
	c := harness.StartControlled(t, []string{"sh", "-c", "exit 7"}, "--workers", "1")
	c.Await("the crash loop", func(s *harness.OperatorStatus) bool { return len(s.Workers) == 1 && s.Workers[0].State == "crash loop" })
	text := c.Must("status")
	for _, want := range []string{`^ready 0 of 1, queue 0`, `\nworker-1  crash loop  .* exit  .*last exit: exit status 7\n`} {
		testkit.Want(t, regexp.MustCompile(want).MatchString(text), "no %s in\n%s", want, text)
	}
	c.Command("scale", "2").WantExit(harness.Patience, 1, "is in a crash loop (exit status 7)")
}

// The JSON forms hold what docs/control.md promises.
func TestCommandsAsJSON(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2").AwaitReady(2)
	var status map[string]any
	testkit.Must(t, json.Unmarshal([]byte(c.Must("status", "--json")), &status))
	for _, key := range []string{"version", "pid", "started", "state", "generation", "listeners", "wanted", "ready", "workers", "upstreams", "in_flight", "queue", "config"} {
		_, there := status[key]
		testkit.Want(t, there, "the status has no %s", key)
	}
	var last map[string]any
	for line := range strings.Lines(c.Must("restart", "--json")) {
		last = nil
		err := json.Unmarshal([]byte(line), &last)
		testkit.Need(t, err == nil, "%s: %v", line, err)
	}
	testkit.Want(t, last["done"] == true && last["operation"] == "restart", "the last event is %v", last)
	p := c.Command("drain", "nobody", "--json")
	if code := p.ExitCode(harness.Patience); code != 2 || !strings.Contains(p.Output(), `"error":"there is no worker`) {
		t.Errorf("an error: exit code %d, %s", code, p.Output())
	}
}

// cabrank stop returns when cabrank has ended, with 0 and without a trace;
// --now does not wait for calls.
func TestStopCommand(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", "10m").AwaitReady(1)
	long := c.LongCalls(t.Context(), 1)
	patient := c.Command("stop")
	c.Await("the stop", func(s *harness.OperatorStatus) bool { return s.State == "stopping" })
	second := c.Command("stop")
	second.Wait(harness.Patience, "the second to wait", func() bool { return strings.Contains(second.Output(), "stopping, at most") })
	c.Ended = true
	c.Must("stop", "--now")
	testkit.Want(t, c.Exited() || c.ExitCode(harness.Patience) == 0, "cabrank has not ended with 0 when stop returns")
	harness.WantStatus(t, (<-long).Err, codes.Unavailable, "cabrank: shutting down")
	for _, client := range []*harness.Process{patient, second} {
		client.WantExit(harness.Patience, 3) // they did not want a call to be cut
	}
	testkit.Want(t, !harness.FileExists(c.Socket), "the socket is left")
	c.WaitNoneLeft(harness.Patience)
	c.Command("stop").WantExit(harness.Patience, 2, "nothing listens on "+c.Socket+"; is cabrank running?")
}

// The socket goes with its process, also if that is stopped while it boots; what
// kill -9 leaves is replaced by the next start, and a living one by none.
func TestControlSocketFile(t *testing.T) {
	c := harness.StartControlled(t, []string{"sleep", "1000"}, "--workers", "1")
	c.Await("the boot", func(s *harness.OperatorStatus) bool { return s.State == "starting" && len(s.Workers) == 1 })
	info, err := os.Lstat(c.Socket)
	testkit.Want(t, err == nil && info.Mode() == fs.ModeSocket|0o600, "the socket is %v (%v), want mode 0600", info, err)
	harness.StartLine(t, harness.RunLine(t, []string{"sleep", "1000"}, "--control", c.Socket)...).
		WantExit(harness.Patience, 1, fmt.Sprintf("control socket %s belongs to a process that runs", c.Socket))
	c.Stop()
	testkit.Want(t, !harness.FileExists(c.Socket), "the socket is left after SIGTERM during the boot")

	flags := []string{"--workers", "1", "--control", c.Socket}
	killed := harness.StartFault(t, harness.FaultWorker(t), flags...).Booted(1)
	killed.Kill()
	testkit.Need(t, harness.FileExists(c.Socket), "kill -9 has left no socket: this test shows nothing")
	next := harness.StartFault(t, harness.FaultWorker(t), flags...)
	c.AwaitReady(1)
	next.Stop()
	testkit.Want(t, !harness.FileExists(c.Socket), "the socket is left")
}

// Without --control the only cabrank of this user is found; of two, one has to be
// chosen.
func TestControlIsFound(t *testing.T) {
	runtime := harness.ShortTempDir(t)
	env := []string{"XDG_RUNTIME_DIR=" + runtime, "TMPDIR=" + runtime}
	start := func() *harness.Cabrank {
		return harness.StartCabrankEnv(t, env, slices.Concat([]string{"--transport", "unix", "--workers", "1", "--"}, harness.FaultWorker(t))...)
	}
	ask := func() *harness.Process { return harness.StartProcess(t, env, harness.CabrankBinary(t), "status") }
	first := start()
	ask().WantExit(harness.Patience, 0, "on "+first.Addr)
	second := start()
	ask().WantExit(harness.Patience, 2, "several cabranks run: choose one with --control, of "+runtime)
	first.Stop()
	ask().WantExit(harness.Patience, 0, "on "+second.Addr)
	second.Stop()
	ask().WantExit(harness.Patience, 2, "is cabrank running?")
	harness.WantEmpty(t, runtime)
}

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
	testkit.Says(t, c.Must("status"), "the last roll cut 5 calls")
	out := c.Must("restart")
	testkit.Want(t, !strings.Contains(out, "cut"), "without calls:\n%s", out)
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
	lines := c.LogLines("calls were cut")
	testkit.Want(t, len(lines) == 1 && lines[0].Text("calls") == "2", "%d lines: %v", len(lines), lines)
	c.Ended = true
	c.Must("stop")
}
