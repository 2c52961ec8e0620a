//go:build real

package real_test

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
	"time"

	"google.golang.org/grpc/codes"
)

// controlled is a cabrank with a control socket of its own.
type controlled struct {
	*Cabrank

	socket string
	op     *operator
}

// startControlled starts cabrank over fault workers, with a control socket in a
// folder that has nothing else.
func startControlled(t *testing.T, worker []string, flags ...string) *controlled {
	t.Helper()
	socket := filepath.Join(shortTempDir(t), "c.sock")
	flags = append(flags, "--control", socket)
	return &controlled{Cabrank: startFault(t, worker, flags...), socket: socket, op: newOperator(t, socket)}
}

// command runs a command to its end.
func (c *controlled) command(args ...string) (p *Process, code int) {
	c.t.Helper()
	return runToEnd(c.t.(*testing.T), slices.Insert(args, 1, "--control", c.socket)...)
}

// must runs a command that has to succeed and returns what it printed.
func (c *controlled) must(args ...string) string {
	c.t.Helper()
	p, code := c.command(args...)
	if code != 0 {
		c.t.Fatalf("%v: exit code %d\n%s%s", args, code, p.Output(), p.Log())
	}
	return p.Output()
}

// status returns the status, which has to be there.
func (c *controlled) status() *operatorStatus {
	c.t.Helper()
	s, err := c.op.status()
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *controlled) await(what string, done func(*operatorStatus) bool) {
	c.t.Helper()
	if err := c.op.await(patience, what, done); err != nil {
		c.t.Fatal(err)
	}
}

func (c *controlled) awaitReady(n int) {
	c.t.Helper()
	c.await(fmt.Sprintf("%d ready workers", n), func(s *operatorStatus) bool { return s.Ready == n && len(s.Workers) == n })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A restart replaces every worker and loses no call. It says at once how long it
// can take, then each step, and returns when all is done.
func TestRestartUnderLoad(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "3", "--slots", "2")
	c.awaitReady(3)
	before := c.readyPIDs("")
	load := startLoad(t, c.Addr, 4, shortWork)
	load.waitAnswered(t, "", 10)
	said := strings.Split(strings.TrimSpace(c.must("restart")), "\n")
	load.waitAnswered(t, "", 10)
	all := load.stop()
	if failed := failures(all); len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first with %v", len(failed), len(all), failed[0].err)
	}
	c.wantTakenOnce(all)
	if !regexp.MustCompile(`^0/3 replacing workers, at most \d`).MatchString(said[0]) {
		t.Errorf("the first line is %q", said[0])
	}
	if last := said[len(said)-1]; !strings.HasPrefix(last, "restart done in ") || said[len(said)-2] != "3/3 replaced" {
		t.Errorf("the last lines are %q", said[len(said)-2:])
	}
	s := c.status()
	if s.Generation != 2 || s.Ready != 3 || len(s.Workers) != 3 {
		t.Errorf("afterwards: %+v", s)
	}
	for _, pid := range before {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
	c.Stop()
}

// A version that never becomes ready stops the restart: the reason, exit code 1,
// the old workers serve, and the next restart runs their command again.
func TestRestartWithABadVersion(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "2", "--slots", "4")
	c.awaitReady(2)
	before := c.readyPIDs("")
	load := startLoad(t, c.Addr, 4, shortWork)
	for command, want := range map[string]string{"exit 7": "exit status 7", "exec /no/such/program": "exit status"} {
		p, code := c.command("restart", "--", "sh", "-c", command)
		if code != 1 || !strings.HasPrefix(p.Log(), "cabrank: the new workers do not get ready, the others go on: ") || !strings.Contains(p.Log(), want) {
			t.Errorf("%s: exit code %d, %s", command, code, p.Log())
		}
	}
	p, code := c.command("restart", "--", "/no/such/program")
	if code != 1 || !strings.Contains(p.Log(), "no such file or directory") {
		t.Errorf("a program that is not there: exit code %d, %s", code, p.Log())
	}
	if text := c.must("status"); !strings.Contains(text, "the last roll stopped ") {
		t.Errorf("the status says nothing of it:\n%s", text)
	}
	c.awaitReady(2)
	load.waitAnswered(t, "", 10)
	if after := c.readyPIDs(""); !slices.Equal(before, after) {
		t.Errorf("workers %v became %v", before, after)
	}
	c.must("restart")
	if failed := failures(load.stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].err)
	}
	c.Stop()
}

// A second restart takes over, with its own command; who waited for the first
// is told so.
func TestSecondRestartTakesOver(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "2")
	c.awaitReady(2)
	first := StartProcess(t, nil, cabrankBinary(t), "restart", "--control", c.socket, "--", "sleep", "1000")
	c.await("the first restart", func(s *operatorStatus) bool { return s.Roll != nil && s.Roll.Running })
	c.must(append([]string{"restart", "--"}, faultWorker(t, "-say", "second")...)...)
	if code := first.ExitCode(patience); code != 1 || !strings.Contains(first.Log(), "another restart took over") {
		t.Errorf("the first one: exit code %d, %s", code, first.Log())
	}
	if got := strings.Count(c.Output(), "second"); got < 2 {
		t.Errorf("%d workers run the second command", got)
	}
	// Its command stays.
	c.must("restart")
	if got := strings.Count(c.Output(), "second"); got < 4 {
		t.Errorf("%d workers run the second command after one more restart", got)
	}
	c.Stop()
}

// A command with which no restart has ended well is forgotten, also if it came with
// another restart than the one that failed.
func TestFailedCommandIsForgotten(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "1", "--boot-timeout", "3s")
	c.awaitReady(1)
	first := StartProcess(t, nil, cabrankBinary(t), "restart", "--control", c.socket, "--", "sleep", "1000")
	c.await("the first restart", func(s *operatorStatus) bool { return s.Roll != nil && s.Roll.Running })
	if p, code := c.command("restart"); code != 1 || !strings.Contains(p.Log(), "boot timeout") {
		t.Errorf("the second restart: exit code %d, %s", code, p.Log())
	}
	first.ExitCode(patience)
	c.must("restart")
	c.Stop()
}

// A worker that only crashes can be scaled away.
func TestScaleAwayFromACrashLoop(t *testing.T) {
	sick := append([]string{"sh", "-c", `[ "$CABRANK_WORKER_INDEX" = 1 ] && exit 7; exec "$0" "$@"`}, faultWorker(t)...)
	c := startControlled(t, sick, "--workers", "2")
	c.await("the crash loop", func(s *operatorStatus) bool {
		return s.Ready == 1 && len(s.Workers) == 2 && s.Workers[1].State == "crash loop"
	})
	c.must("scale", "1")
	c.Stop()
}

// --force does not wait for calls: they are told why.
func TestForcedRestart(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "1", "--drain-timeout", "10m")
	c.awaitReady(1)
	conn := dialLang(t, c.Addr)
	long := make(chan outcome, 1)
	go func() { long <- callIo(t.Context(), conn, "long", time.Hour) }()
	c.waitTaken(1)
	c.must("restart", "--force")
	wantStatus(t, (<-long).err, codes.Unavailable, "cabrank: worker draining")
	c.Stop()
}

// Who does not want to wait any longer leaves; the restart goes on, also when
// its client dies.
func TestInterruptedRestartGoesOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			c := startControlled(t, faultWorker(t), "--workers", "1", "--drain-timeout", "10m")
			c.awaitReady(1)
			conn := dialLang(t, c.Addr)
			ctx, cancel := context.WithCancel(t.Context())
			long := make(chan outcome, 1)
			go func() { long <- callIo(ctx, conn, "long", time.Hour) }()
			c.waitTaken(1)
			client := StartProcess(t, nil, cabrankBinary(t), "restart", "--control", c.socket)
			client.wait(patience, "the drain", func() bool { return strings.Contains(client.Output(), "draining worker-1 (1 call)") })
			client.Signal(sig)
			code := client.ExitCode(patience)
			if sig == syscall.SIGINT && (code != 1 || !strings.Contains(client.Log(), "the restart goes on")) {
				t.Errorf("exit code %d, %s", code, client.Log())
			}
			cancel()
			<-long
			c.await("the end of the restart", func(s *operatorStatus) bool { return s.Generation == 2 && s.Ready == 1 && len(s.Workers) == 1 })
			c.Stop()
		})
	}
}

// SIGTERM wins over a restart: who waits for that is told, and cabrank ends with 0.
func TestStopWinsOverARestart(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "2")
	c.awaitReady(2)
	client := StartProcess(t, nil, cabrankBinary(t), "restart", "--control", c.socket, "--", "sleep", "1000")
	c.await("the restart", func(s *operatorStatus) bool { return s.Roll != nil && s.Roll.Running })
	c.Stop()
	if code := client.ExitCode(patience); code != 1 || client.Log() != "cabrank: cabrank is stopping\n" {
		t.Errorf("the restart: exit code %d, %s", code, client.Log())
	}
}

// Up, down, and one worker by its name, under load.
func TestScaleAndDrain(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "2", "--slots", "2")
	c.awaitReady(2)
	load := startLoad(t, c.Addr, 3, shortWork)
	for _, n := range []int{5, 1, 3} {
		c.must("scale", fmt.Sprint(n))
		if s := c.status(); s.Ready != n || s.Wanted != n || len(s.Workers) != n {
			t.Errorf("scale %d: %+v", n, s)
		}
	}
	name := c.status().Workers[0].Name
	c.must("drain", name)
	c.awaitReady(3)
	for args, says := range map[string]string{
		"drain worker-99":        "there is no worker or upstream \"worker-99\"; there are: worker-",
		"scale 100000":           "there can be 1 to ",
		"scale 0":                "is no number of workers",
		"drain --undo " + name:   "there is no worker",
		"drain --force --undo x": "--undo goes without --force",
	} {
		p, code := c.command(strings.Fields(args)...)
		if code != 2 || strings.Count(p.Log(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", args, code, p.Log())
		}
		if args != "drain --undo "+name && !strings.Contains(p.Log(), says) {
			t.Errorf("%s: %s, want %q", args, p.Log(), says)
		}
	}
	if failed := failures(load.stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].err)
	}
	c.Stop()
}

// An upstream is taken out and given back without losing a call.
func TestDrainOfAnUpstream(t *testing.T) {
	var behind []*Cabrank
	for range 2 {
		inner := startFault(t, faultWorker(t), "--workers", "1")
		inner.waitWorkers(1)
		behind = append(behind, inner)
	}
	socket := filepath.Join(shortTempDir(t), "c.sock")
	c := &controlled{
		Cabrank: StartCabrank(t, "--upstream", behind[0].Addr+","+behind[1].Addr, "--control", socket),
		socket:  socket, op: newOperator(t, socket),
	}
	states := func(want ...string) func(*operatorStatus) bool {
		return func(s *operatorStatus) bool {
			got := map[string]string{}
			for _, u := range s.Upstreams {
				got[u.Address] = u.State
			}
			return got[behind[0].Addr] == want[0] && got[behind[1].Addr] == want[1]
		}
	}
	c.await("both upstreams", states("ready", "ready"))
	load := startLoad(t, c.Addr, 3, shortWork)
	behind[0].waitTaken(5)
	c.must("drain", behind[0].Addr)
	if s := c.status(); !states("drained", "ready")(s) {
		t.Errorf("drained: %+v", s)
	}
	served := func() (n uint64) {
		var s struct {
			Upstreams []struct {
				Address string `json:"address"`
				Served  uint64 `json:"served"`
			} `json:"upstreams"`
		}
		if err := json.Unmarshal([]byte(c.must("status", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		for _, u := range s.Upstreams {
			if u.Address == behind[0].Addr {
				n = u.Served
			}
		}
		return n
	}
	before := served()
	load.waitAnswered(t, "", 20)
	if after := served(); after != before {
		t.Errorf("%d calls came to a drained upstream", after-before)
	}
	c.must("drain", "--undo", behind[0].Addr)
	c.await("both upstreams again", states("ready", "ready"))
	c.wait(patience, "calls at the upstream that is back", func() bool { return served() > before })
	if failed := failures(load.stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].err)
	}
	if p, code := c.command("restart"); code != 2 || !strings.Contains(p.Log(), "only upstreams") {
		t.Errorf("restart: exit code %d, %s", code, p.Log())
	}
	c.Stop()
}

// The status shows a crash loop with its last exit, and what waits meanwhile;
// the commands that cannot get anywhere say so.
func TestStatusOfACrashLoop(t *testing.T) {
	c := startControlled(t, []string{"sh", "-c", "exit 7"}, "--workers", "1")
	conn := dialLang(t, c.Addr)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan outcome, 1)
	go func() { waiting <- callIo(ctx, conn, "waits", 0) }()
	c.await("the crash loop", func(s *operatorStatus) bool { return len(s.Workers) == 1 && s.Workers[0].State == "crash loop" })
	c.waitMetric("cabrank_queue_length", 1)
	text := c.must("status")
	for _, want := range []string{`^ready 0 of 1, queue 1 \(oldest \d`, `\nworker-1  crash loop  .* exit  .*last exit: exit status 7\n`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if p, code := c.command("scale", "2"); code != 1 || !strings.Contains(p.Log(), "is in a crash loop (exit status 7)") {
		t.Errorf("scale: exit code %d, %s", code, p.Log())
	}
	cancel()
	<-waiting
	c.Stop()
}

// The JSON forms hold what docs/control.md promises.
func TestCommandsAsJSON(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "2")
	c.awaitReady(2)
	var status map[string]any
	if err := json.Unmarshal([]byte(c.must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"version", "pid", "started", "state", "generation", "listeners", "wanted", "ready", "workers", "upstreams", "in_flight", "queue", "config"} {
		if _, there := status[key]; !there {
			t.Errorf("the status has no %s", key)
		}
	}
	var last map[string]any
	for line := range strings.Lines(c.must("restart", "--json")) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if last["done"] != true || last["operation"] != "restart" {
		t.Errorf("the last event is %v", last)
	}
	p, code := c.command("drain", "nobody", "--json")
	if code != 2 || !strings.Contains(p.Output(), `"error":"there is no worker`) {
		t.Errorf("an error: exit code %d, %s", code, p.Output())
	}
	c.Stop()
}

// cabrank stop returns when cabrank has ended, with 0 and without a trace;
// --now does not wait for calls.
func TestStopCommand(t *testing.T) {
	c := startControlled(t, faultWorker(t), "--workers", "1", "--drain-timeout", "10m")
	c.awaitReady(1)
	conn := dialLang(t, c.Addr)
	long := make(chan outcome, 1)
	go func() { long <- callIo(t.Context(), conn, "long", time.Hour) }()
	c.waitTaken(1)
	patient := StartProcess(t, nil, cabrankBinary(t), "stop", "--control", c.socket)
	c.await("the stop", func(s *operatorStatus) bool { return s.State == "stopping" })
	second := StartProcess(t, nil, cabrankBinary(t), "stop", "--control", c.socket)
	second.wait(patience, "the second to wait", func() bool { return strings.Contains(second.Output(), "stopping, at most") })
	c.ended = true
	c.must("stop", "--now")
	if !c.Exited() && c.ExitCode(time.Second) != 0 {
		t.Error("cabrank has not ended with 0 when stop returns")
	}
	wantStatus(t, (<-long).err, codes.Unavailable, "cabrank: shutting down")
	for _, client := range []*Process{patient, second} {
		if code := client.ExitCode(patience); code != 0 {
			t.Errorf("who waited: exit code %d, %s", code, client.Log())
		}
	}
	if exists(c.socket) {
		t.Error("the socket is left")
	}
	c.WaitNoneLeft(3 * time.Second)
	p, code := c.command("stop")
	if code != 2 || !strings.Contains(p.Log(), "nothing listens on "+c.socket+"; is cabrank running?") {
		t.Errorf("without a cabrank: exit code %d, %s", code, p.Log())
	}
}

// The socket goes with its process, also if that is stopped while it boots; what
// kill -9 leaves is replaced by the next start, and a living one by none.
func TestControlSocketFile(t *testing.T) {
	c := startControlled(t, []string{"sleep", "1000"}, "--workers", "1")
	c.await("the boot", func(s *operatorStatus) bool { return s.State == "starting" && len(s.Workers) == 1 })
	for path, want := range map[string]fs.FileMode{c.socket: fs.ModeSocket | 0o600} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
	p, code := runToEnd(t, "run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--control", c.socket, "--", "sleep", "1000")
	if code != 1 || !strings.Contains(p.Log(), fmt.Sprintf("control socket %s belongs to a process that runs", c.socket)) {
		t.Errorf("a second one on the same path: exit code %d, %s", code, p.Log())
	}
	c.Stop()
	if exists(c.socket) {
		t.Error("the socket is left after SIGTERM during the boot")
	}

	flags := []string{"--workers", "1", "--control", c.socket}
	killed := startFault(t, faultWorker(t), flags...)
	killed.waitWorkers(1)
	killed.Kill()
	if !exists(c.socket) {
		t.Fatal("kill -9 has left no socket: this test shows nothing")
	}
	next := startFault(t, faultWorker(t), flags...)
	c.awaitReady(1)
	next.Stop()
	if exists(c.socket) {
		t.Error("the socket is left")
	}
}

// Without --control the only cabrank of this user is found; of two, one has to be
// chosen.
func TestControlIsFound(t *testing.T) {
	runtime := shortTempDir(t)
	env := []string{"XDG_RUNTIME_DIR=" + runtime, "TMPDIR=" + runtime}
	start := func() *Cabrank {
		return StartCabrankEnv(t, env, slices.Concat([]string{"--transport", "unix", "--workers", "1", "--"}, faultWorker(t))...)
	}
	ask := func() (p *Process, code int) {
		p = StartProcess(t, env, cabrankBinary(t), "status")
		code = p.ExitCode(patience)
		return p, code
	}
	first := start()
	if p, code := ask(); code != 0 || !strings.Contains(p.Output(), "on "+first.Addr) {
		t.Errorf("one: exit code %d, %s%s", code, p.Output(), p.Log())
	}
	second := start()
	if p, code := ask(); code != 2 || !strings.Contains(p.Log(), "several cabranks run: choose one with --control, of "+runtime) {
		t.Errorf("two: exit code %d, %s", code, p.Log())
	}
	first.Stop()
	if p, code := ask(); code != 0 || !strings.Contains(p.Output(), "on "+second.Addr) {
		t.Errorf("the other: exit code %d, %s%s", code, p.Output(), p.Log())
	}
	second.Stop()
	if p, code := ask(); code != 2 || !strings.Contains(p.Log(), "is cabrank running?") {
		t.Errorf("none: exit code %d, %s", code, p.Log())
	}
	if left := filesIn(t, runtime); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
