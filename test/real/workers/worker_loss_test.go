//go:build real || soak

package workers_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A worker that dies under steady load takes with it only the calls that it had,
// each of which is told so, once; the other worker goes on, and the dead one
// comes back (R4).
func TestWorkerDiesUnderLoad(t *testing.T) {
	for _, transport := range []string{"tcp", "unix"} {
		t.Run(transport, func(t *testing.T) { killUnderLoad(t, transport) })
	}
}

func killUnderLoad(t *testing.T, transport string) {
	t.Helper()
	const slots, deaths = 3, 3
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", strconv.Itoa(slots),
		"--transport", transport, "--start-port", strconv.Itoa(testkit.FreePorts(t, 4)))
	c.WaitWorkers(2)
	readiness := c.WatchProbe("readiness")
	load := harness.StartLoad(t, c.Addr, 2*slots+2, harness.ShortWork)
	for death := range deaths {
		load.WaitAnswered(t, "worker-1", 20)
		pids := c.ReadyPIDs("worker-1")
		c.KillPID(pids[len(pids)-1])
		c.Wait(harness.Patience, "the return of worker-1", func() bool { return len(c.ReadyPIDs("worker-1")) == death+2 })
	}
	load.WaitAnswered(t, "worker-1", 20)
	all := load.Stop()
	seen := readiness.Stop()
	testkit.Want(t, seen[http.StatusOK] != 0 && len(seen) == 1, "readiness by status: %v, want only 200", seen)

	failed := harness.Failures(all)
	for _, o := range failed {
		harness.WantStatus(t, o.Err, codes.Unavailable, "cabrank: worker lost")
	}
	// A call in the socket of a process that is being killed counts as taken.
	testkit.Want(t, len(failed) <= deaths*slots && len(failed) != 0,
		"%d of %d calls failed; %d workers with %d slots died", len(failed), len(all), deaths, slots)
	testkit.Equal(t, c.Metric("cabrank_refusals_total", "reason", "worker_lost"), float64(len(failed)), "lost calls that the page counts")
	c.Stop()
	c.WantTakenOnce(all)
}

// Calls that come while the only worker is away wait for its return.
func TestCallsWaitForTheWorkerToReturn(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1")
	conn := harness.Dial(t, c.Addr)
	harness.CallIo(t.Context(), conn, "before-ready", 0).WantOK(t)
	c.KillPID(c.WaitWorkers(1))
	c.Wait(harness.Patience, "readiness to go", func() bool {
		return c.Probe("readiness") == http.StatusServiceUnavailable || len(c.ReadyPIDs("worker-1")) > 1
	})
	harness.CallIo(t.Context(), conn, "during-restart", 0).WantOK(t)
}

// cabrank in front of cabrank, both flooded: a call that the inner one refuses
// is refused to the caller, not made again (R1).
func TestChainDoesNotMultiplyCalls(t *testing.T) {
	const calls = 300
	inner := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "2", "--queue", "10").Booted(1)
	outer := harness.StartCabrank(t, "--upstream", inner.Addr, "--slots", "100")
	outer.WaitReady(harness.Patience)
	ended := make(chan harness.Outcome, calls)
	for i := range calls {
		conn := harness.Dial(t, outer.Addr)
		go func() { ended <- harness.CallIo(t.Context(), conn, strconv.Itoa(i), harness.ShortWork) }()
	}
	var all []harness.Outcome
	byMessage := map[string]int{}
	for range calls {
		got := <-ended
		all = append(all, got)
		byMessage[status.Convert(got.Err).Message()]++
	}
	answered, full := byMessage[""], byMessage["cabrank: queue full"]
	testkit.Want(t, answered != 0 && full != 0 && answered+full == calls,
		"answers by message: %v, want some OK and the rest refused for a full queue", byMessage)
	outer.Stop()
	inner.Stop()
	inner.WantTakenOnce(all)
	testkit.Equal(t, len(inner.Taken()), answered, "calls that ran")
}

// A connection that nobody has accepted has taken no call, although the kernel
// would have accepted its bytes. When it dies its calls move; so they do when
// nobody accepts it in time, or who does is silent (R4, R10).
func TestCallsOfABacklogMove(t *testing.T) {
	t.Run("closed", func(t *testing.T) { moveFromBacklog(t, func(silent *listless) { silent.vanish() }) })
	t.Run("left alone", func(t *testing.T) { moveFromBacklog(t, func(*listless) {}) })
}

// listless accepts the one connection by which an endpoint is watched, answers
// questions for its health there, and leaves all others to the kernel.
type listless struct {
	net.Listener

	gone chan struct{}

	mu    sync.Mutex
	conns []net.Conn
	ended bool
}

func startListless(t *testing.T) *listless {
	t.Helper()
	listener := testkit.Listen(t)
	l := &listless{Listener: listener, gone: make(chan struct{})}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		l.vanish()
		server.Stop()
		<-done
	})
	return l
}

func (l *listless) Accept() (net.Conn, error) {
	l.mu.Lock()
	enough := len(l.conns) == 1
	l.mu.Unlock()
	if enough {
		<-l.gone
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// vanish ends all connections, also those that nobody has accepted.
func (l *listless) vanish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.gone)
	l.Close()
	for _, conn := range l.conns {
		conn.Close()
	}
}

func moveFromBacklog(t *testing.T, then func(silent *listless)) {
	t.Helper()
	const calls = 20
	silent := startListless(t)
	behind := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "100").Booted(1)
	c := harness.StartCabrank(t, "--upstream", silent.Addr().String()+","+behind.Addr, "--slots", "100", "--min-ready", "2")
	c.WaitReady(harness.Patience)

	conn := harness.Dial(t, c.Addr)
	ended := make(chan harness.Outcome, calls)
	for i := range calls {
		go func() { ended <- harness.CallIo(t.Context(), conn, strconv.Itoa(i), 0) }()
	}
	for range calls / 2 { // the other half are with the silent one
		(<-ended).WantOK(t)
	}
	then(silent)
	for range calls / 2 {
		(<-ended).WantOK(t)
	}
	c.Stop()
	behind.Stop()
}

// A worker that is stopped by a signal keeps its calls and gets no new ones
// within a second; when it goes on, so do its calls, and it gets others (R6).
func TestFrozenWorkerKeepsItsCalls(t *testing.T) {
	const slots = 2
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", strconv.Itoa(slots))
	pid := c.WaitWorkers(2)
	conn := harness.Dial(t, c.Addr)
	held := make(chan harness.Outcome, 2*slots)
	for i := range 2 * slots {
		go func() { held <- harness.CallIo(t.Context(), conn, "held-"+strconv.Itoa(i), frozenWork) }()
	}
	c.WaitTaken(2 * slots)
	c.SignalTo(pid, syscall.SIGSTOP)
	line := c.WaitLog(harness.Patience, "worker takes no calls")
	testkit.Says(t, line, `"stopped":true`)
	c.WaitMetric("cabrank_worker_state", 1, "worker", "worker-1", "state", "stopped")
	for i := range 50 {
		got := harness.CallIo(t.Context(), conn, "new-"+strconv.Itoa(i), 0)
		testkit.Want(t, got.Err == nil && got.Worker != "worker-1", "call %d: answered by %q, %v", i, got.Worker, got.Err)
	}
	c.SignalTo(pid, syscall.SIGCONT)
	for range 2 * slots {
		(<-held).WantOK(t)
	}
	load := harness.StartLoad(t, c.Addr, 2*slots, harness.ShortWork)
	load.WaitAnswered(t, "worker-1", 5)
	load.WantNoFailure(t)
	pids := c.ReadyPIDs("worker-1")
	testkit.Want(t, pids[len(pids)-1] == pid, "the worker was replaced: %v", pids)
}

// frozenWork is longer than it takes to see that a process is stopped.
const frozenWork = 1500 * time.Millisecond

// A program that only ever crashes brings down nothing but itself: calls are
// told that no worker is ready, long before their deadlines, probes and metrics
// say why, and a stop is a stop.
func TestCrashLoopIsTold(t *testing.T) {
	c := harness.StartFault(t, []string{"sh", "-c", "echo broken >&2; exit 3"}, "--workers", "1", "--queue-timeout", "10m")
	conn := harness.Dial(t, c.Addr)
	for _, who := range []string{"waits", "comes"} {
		ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
		harness.WantStatus(t, harness.CallIo(ctx, conn, who, 0).Err, codes.Unavailable, "cabrank: no worker ready")
		cancel()
	}
	c.WaitMetric("cabrank_worker_state", 1, "worker", "worker-1", "state", "crash loop")
	got := c.Metric("cabrank_worker_restarts_total", "worker", "worker-1", "cause", "exit")
	testkit.Want(t, got >= 5, "%v restarts in a crash loop", got)
	harness.WantProbes(t, c, map[string]int{"startup": 503, "readiness": 503, "liveness": 200})
	testkit.Says(t, c.WaitLog(harness.Patience, "crash loop"), "exit status 3")
}

// A worker that is killed while it drains is lost, not drained: what it had is
// told so, although it was about to be replaced anyway.
func TestKilledWhileDraining(t *testing.T) {
	socket := filepath.Join(harness.ShortTempDir(t), "control.sock")
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "2", "--control", socket)
	pid := c.WaitWorkers(1)
	conn := harness.Dial(t, c.Addr)
	held := harness.GoIo(t.Context(), conn, "held", harness.CallBound)
	c.WaitTaken(1)
	drained := make(chan error, 1)
	go func() { drained <- harness.NewOperator(t, socket).Run(harness.ChangeLimit, "drain", "worker-1") }()
	c.WaitLog(harness.Patience, "worker draining")
	c.KillPID(pid)
	harness.WantStatus(t, (<-held).Err, codes.Unavailable, "cabrank: worker lost")
	err := <-drained
	testkit.Want(t, err == nil, "the drain of a worker that was killed: %v", err)
	c.Stop()
}

// forkingPython forks a family that sleeps, and becomes the worker.
const forkingPython = `import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        if os.fork() == 0:
            os.fork()
        time.sleep(1000)
os.execv(sys.argv[1], sys.argv[1:])
`

// After kill -9 of cabrank nothing of its workers is left, whoever stands
// between, and the next start on the same ports serves (R18).
func TestNothingIsLeftAfterKill9(t *testing.T) {
	worker := harness.FaultWorker(t)
	npm := npmPackage(t, worker)
	for _, test := range []struct {
		name      string
		command   []string
		processes int // of one worker, at least
	}{
		{"plain", worker, 1},
		{"shell that waits", []string{"sh", "-c", `"$0" "$@" & wait`, worker[0], worker[1]}, 2},
		{"npm start", []string{"npm", "start", "--silent", "--prefix", npm}, 2},
		{"forking python", append([]string{"python3", "-c", forkingPython}, worker...), 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			const workers = 2
			flags := []string{"--workers", strconv.Itoa(workers), "--start-port", strconv.Itoa(testkit.FreePorts(t, 2*workers)), "--"}
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), slices.Concat([]string{"--listen", testkit.FreeAddress(t)}, flags, test.command)...).Booted(workers)
			c.Wait(harness.Patience, "the whole family", func() bool { return len(c.Family()) >= 2+workers*test.processes })
			load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
			load.WaitAnswered(t, "", 4)
			c.Kill()
			c.WaitNoneLeft(harness.Patience)
			load.Stop()

			again := harness.StartCabrankEnv(t, harness.LangEnv(t), slices.Concat([]string{"--listen", c.Addr}, flags, worker)...)
			harness.CallIo(t.Context(), harness.Dial(t, again.Addr), "again", 0).WantOK(t)
			again.Stop()
		})
	}
}

// kill -9 of cabrank while it changes: nothing is left, no hook either, and the
// next start with the same addresses serves, on the control socket too, and
// sweeps (R18, R19).
func TestNothingIsLeftAfterKill9During(t *testing.T) {
	for _, test := range []struct {
		name, command string
		env           []string
		sign          string // part of a command line that shows the moment
	}{
		{"roll", "restart", nil, harness.FaultWorkerRole},
		{"upgrade", "upgrade", nil, harness.FaultWorkerRole},
		{"hook", "restart", []string{"CABRANK_HOOKS={before_stop: sleep 1000}"}, "sleep 1000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			runtime := harness.ShortTempDir(t)
			env := append(test.env, "XDG_RUNTIME_DIR="+runtime)
			o := harness.NewOperator(t, filepath.Join(runtime, "control.sock"))
			args := []string{"--listen", testkit.FreeAddress(t), "--control", o.Socket, "--workers", "2", "--transport", "unix", "--"}
			args = append(args, harness.FaultWorker(t, "-boot", "300ms")...)
			c := harness.StartCabrankEnv(t, env, args...).Booted(2)
			before := c.Family()
			load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
			load.WaitAnswered(t, "", 4)
			commanded := make(chan struct{})
			go func() { // ends with cabrank
				defer close(commanded)
				_ = o.Run(harness.ChangeLimit, test.command) // cabrank is killed meanwhile
			}()
			c.Wait(harness.Patience, "a new process with "+test.sign, func() bool {
				return slices.ContainsFunc(c.Family(), func(pid int) bool {
					return !slices.Contains(before, pid) && strings.Contains(harness.Describe([]int{pid}), test.sign)
				})
			})
			c.Kill()
			c.WaitNoneLeft(harness.Patience)
			load.Stop()
			<-commanded

			again := harness.StartCabrankEnv(t, env[len(test.env):], args...)
			harness.CallIo(t.Context(), harness.Dial(t, again.Addr), "again", 0).WantOK(t)
			s, err := o.Status()
			testkit.Want(t, err == nil && s.PID == again.PID, "the status after the next start: %+v, %v", s, err)
			again.Stop()
			harness.WantEmpty(t, runtime)
		})
	}
}

// npmPackage makes a package whose start script runs the worker by a shell, as
// npm does.
func npmPackage(t *testing.T, worker []string) string {
	t.Helper()
	dir := t.TempDir()
	manifest := fmt.Sprintf(`{"name": "fault", "version": "1.0.0", "scripts": {"start": "%s %s; true"}}`, worker[0], worker[1])
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(manifest), 0o600))
	return dir
}

// Orphans of a worker become cabrank's children, and are reaped (R18).
func TestOrphansOfWorkersAreReaped(t *testing.T) {
	script := `i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; exec "$0" "$@"`
	c := harness.StartFault(t, append([]string{"sh", "-c", script}, harness.FaultWorker(t)...), "--workers", "1").Booted(1)
	testkit.Eventually(t, harness.Patience, "no zombie under cabrank", func() bool { return zombiesOf(c.PID) == 0 })
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
}

// zombiesOf counts the dead children of a process that it has not waited for.
// Source: proc(5), the fields of stat behind the name are state and parent.
func zombiesOf(parent int) int {
	count := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(parent) {
			count++
		}
	}
	return count
}
