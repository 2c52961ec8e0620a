//go:build real

package real_test

import (
	"net"
	"net/http"
	"path/filepath"
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
	c := startFault(t, faultWorker(t), "--workers", "2", "--slots", strconv.Itoa(slots),
		"--transport", transport, "--start-port", strconv.Itoa(freePorts(t, 4)))
	c.waitWorkers(2)
	readiness := c.watchProbe("readiness")
	load := startLoad(t, c.Addr, 2*slots+2, shortWork)
	for death := range deaths {
		load.waitAnswered(t, "worker-1", 20)
		pids := c.readyPIDs("worker-1")
		c.kill(pids[len(pids)-1])
		c.wait(patience, "the return of worker-1", func() bool { return len(c.readyPIDs("worker-1")) == death+2 })
	}
	load.waitAnswered(t, "worker-1", 20)
	all := load.stop()
	if seen := readiness.stop(); seen[http.StatusOK] == 0 || len(seen) != 1 {
		t.Errorf("readiness by status: %v, want only 200", seen)
	}

	failed := failures(all)
	for _, o := range failed {
		wantStatus(t, o.err, codes.Unavailable, "cabrank: worker lost")
	}
	// A call in the socket of a process that is being killed counts as taken.
	if len(failed) > deaths*slots || len(failed) == 0 {
		t.Errorf("%d of %d calls failed; %d workers with %d slots died", len(failed), len(all), deaths, slots)
	}
	if got := c.metric("cabrank_refusals_total", "reason", "worker_lost"); got != float64(len(failed)) {
		t.Errorf("the page counts %v lost calls, callers saw %d", got, len(failed))
	}
	c.Stop()
	c.wantTakenOnce(all)
}

// Calls that come while the only worker is away wait for its return.
func TestCallsWaitForTheWorkerToReturn(t *testing.T) {
	c := startFault(t, faultWorker(t), "--workers", "1")
	conn := dialLang(t, c.Addr)
	if got := callIo(t.Context(), conn, "before-ready", 0); got.err != nil {
		t.Errorf("a call that came before the first worker was ready: %v", got.err)
	}
	c.kill(c.waitWorkers(1))
	c.wait(patience, "readiness to go", func() bool {
		return c.Probe("readiness") == http.StatusServiceUnavailable || len(c.readyPIDs("worker-1")) > 1
	})
	if got := callIo(t.Context(), conn, "during-restart", 0); got.err != nil {
		t.Errorf("a call that came while the worker was away: %v", got.err)
	}
	c.Stop()
}

// cabrank in front of cabrank, both flooded: a call that the inner one refuses
// is refused to the caller, not made again (R1).
func TestChainDoesNotMultiplyCalls(t *testing.T) {
	const calls = 300
	inner := startFault(t, faultWorker(t), "--workers", "1", "--slots", "2", "--queue", "10")
	inner.waitWorkers(1)
	outer := StartCabrank(t, "--upstream", inner.Addr, "--slots", "100")
	outer.WaitReady(patience)
	ended := make(chan outcome, calls)
	for i := range calls {
		conn := dialLang(t, outer.Addr)
		go func() { ended <- callIo(t.Context(), conn, strconv.Itoa(i), shortWork) }()
	}
	var all []outcome
	byMessage := map[string]int{}
	for range calls {
		got := <-ended
		all = append(all, got)
		byMessage[status.Convert(got.err).Message()]++
	}
	answered, full := byMessage[""], byMessage["cabrank: queue full"]
	if answered == 0 || full == 0 || answered+full != calls {
		t.Errorf("answers by message: %v, want some OK and the rest refused for a full queue", byMessage)
	}
	outer.Stop()
	inner.Stop()
	inner.wantTakenOnce(all)
	if ran := len(inner.taken()); ran != answered {
		t.Errorf("%d calls ran, %d were answered", ran, answered)
	}
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	behind := startFault(t, faultWorker(t), "--workers", "1", "--slots", "100")
	behind.waitWorkers(1)
	c := StartCabrank(t, "--upstream", silent.Addr().String()+","+behind.Addr, "--slots", "100", "--min-ready", "2")
	c.WaitReady(patience)

	conn := dialLang(t, c.Addr)
	ended := make(chan outcome, calls)
	for i := range calls {
		go func() { ended <- callIo(t.Context(), conn, strconv.Itoa(i), 0) }()
	}
	for range calls / 2 { // the other half are with the silent one
		if got := <-ended; got.err != nil {
			t.Error(got.err)
		}
	}
	then(silent)
	for range calls / 2 {
		if got := <-ended; got.err != nil {
			t.Error(got.err)
		}
	}
	c.Stop()
	behind.Stop()
}

// A worker that is stopped by a signal keeps its calls and gets no new ones
// within a second; when it goes on, so do its calls, and it gets others (R6).
func TestFrozenWorkerKeepsItsCalls(t *testing.T) {
	const slots = 2
	c := startFault(t, faultWorker(t), "--workers", "2", "--slots", strconv.Itoa(slots))
	pid := c.waitWorkers(2)
	conn := dialLang(t, c.Addr)
	held := make(chan outcome, 2*slots)
	for i := range 2 * slots {
		go func() { held <- callIo(t.Context(), conn, "held-"+strconv.Itoa(i), frozenWork) }()
	}
	c.waitTaken(2 * slots)
	c.signal(pid, syscall.SIGSTOP)
	line := c.WaitLog(patience, "worker takes no calls")
	if !strings.Contains(line, `"stopped":true`) {
		t.Errorf("the line does not say why: %s", line)
	}
	c.waitMetric("cabrank_worker_state", 1, "worker", "worker-1", "state", "stopped")
	for i := range 50 {
		if got := callIo(t.Context(), conn, "new-"+strconv.Itoa(i), 0); got.err != nil || got.worker == "worker-1" {
			t.Errorf("call %d: answered by %q, %v", i, got.worker, got.err)
		}
	}
	c.signal(pid, syscall.SIGCONT)
	for range 2 * slots {
		if got := <-held; got.err != nil {
			t.Errorf("call %s: %v", got.id, got.err)
		}
	}
	load := startLoad(t, c.Addr, 2*slots, shortWork)
	load.waitAnswered(t, "worker-1", 5)
	if failed := failures(load.stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].err)
	}
	if pids := c.readyPIDs("worker-1"); pids[len(pids)-1] != pid {
		t.Errorf("the worker was replaced: %v", pids)
	}
	c.Stop()
}

// frozenWork is longer than it takes to see that a process is stopped.
const frozenWork = 1500 * time.Millisecond

// A program that only ever crashes brings down nothing but itself: calls are
// told that no worker is ready, probes and metrics say why, and a stop is a
// stop.
func TestCrashLoopIsTold(t *testing.T) {
	c := startFault(t, []string{"sh", "-c", "echo broken >&2; exit 3"}, "--workers", "1", "--queue-timeout", "100ms")
	conn := dialLang(t, c.Addr)
	wantStatus(t, callIo(t.Context(), conn, "1", 0).err, codes.Unavailable, "cabrank: no worker ready")
	c.waitMetric("cabrank_worker_state", 1, "worker", "worker-1", "state", "crash loop")
	if got := c.metric("cabrank_worker_restarts_total", "worker", "worker-1", "cause", "exit"); got < 5 {
		t.Errorf("%v restarts in a crash loop", got)
	}
	wantProbes(t, c, map[string]int{"startup": 503, "readiness": 503, "liveness": 200})
	if line := c.WaitLog(patience, "crash loop"); !strings.Contains(line, "exit status 3") {
		t.Errorf("the line does not say how: %s", line)
	}
	c.Stop()
}

// A worker that is killed while it drains is lost, not drained: what it had is
// told so, although it was about to be replaced anyway.
func TestKilledWhileDraining(t *testing.T) {
	socket := filepath.Join(shortTempDir(t), "control.sock")
	c := startFault(t, faultWorker(t), "--workers", "1", "--slots", "2", "--control", socket)
	pid := c.waitWorkers(1)
	conn := dialLang(t, c.Addr)
	held := make(chan outcome, 1)
	go func() { held <- callIo(t.Context(), conn, "held", callBound) }()
	c.waitTaken(1)
	drained := make(chan error, 1)
	go func() { drained <- newOperator(t, socket).run(changeLimit, "drain", "worker-1") }()
	c.WaitLog(patience, "worker draining")
	c.kill(pid)
	wantStatus(t, (<-held).err, codes.Unavailable, "cabrank: worker lost")
	if err := <-drained; err != nil {
		t.Errorf("the drain of a worker that was killed: %v", err)
	}
	c.Stop()
}
