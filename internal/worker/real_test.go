//go:build (real || soak) && linux

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/testkit"
)

// The tests of this tag start children: this binary again, in one of the roles
// below, or a shell. They look for them in /proc, so they are for Linux. They do
// not run in parallel, because a process has one reaper.
func TestMain(m *testing.M) {
	os.Exit(play(m)) //nolint:forbidigo // this is main of four programs
}

// play acts the role that the arguments name, by default that of the tests.
func play(m *testing.M) int {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "keeper":
		pause, _ := time.ParseDuration(os.Getenv("CABRANK_TEST_KEEPER_PAUSE")) // none by default
		time.Sleep(pause)                                                      //nolint:forbidigo // the slow keeper itself
		return process.RunKeeper(os.Stdin, os.Stdout)
	case "test-worker":
		return testWorker(os.Args[2:])
	case "test-supervisor":
		return testSupervisor(os.Args[2:])
	}
	// The first Notify starts a goroutine of the runtime for ever; it must not
	// look like one left behind.
	winch := make(chan os.Signal, 1)
	signal.Notify(winch, unix.SIGWINCH)
	signal.Stop(winch)
	return m.Run()
}

// testWorker is a worker of a given kind.
//
// Kinds: serve (with health: USR1 says NOT_SERVING, USR2 SERVING, HUP stops
// answering until the next HUP), share (serve, with SO_REUSEPORT), plain (gRPC
// without health), stubborn (serve, but deaf to TERM), silent (never listens), cold
// (serve, but every other method answers UNAVAILABLE until USR2).
func testWorker(args []string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGHUP)
	checks := &slowHealth{Server: health.NewServer()}
	if args[0] != "silent" {
		var others []grpc.ServerOption
		if args[0] == "cold" {
			checks.cold.Store(true)
			others = append(others, grpc.UnknownServiceHandler(checks.answer))
		}
		server := grpc.NewServer(others...)
		if args[0] != "plain" {
			grpc_health_v1.RegisterHealthServer(server, checks)
		}
		network, address := "tcp", os.Getenv("CABRANK_ADDR")
		if path, found := strings.CutPrefix(address, "unix:"); found {
			network, address = "unix", path
		}
		listen := net.Listen
		if args[0] == "share" {
			listen = listenShared
		}
		listener, err := listen(network, address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		go server.Serve(listener)
		defer server.Stop()
	}
	for {
		switch <-signals {
		case unix.SIGTERM:
			if args[0] != "stubborn" {
				return 0
			}
		case unix.SIGUSR1:
			checks.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		case unix.SIGUSR2:
			checks.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
			checks.cold.Store(false)
		case unix.SIGHUP:
			checks.toggle()
		}
	}
}

// listenShared lets others of this user listen on the same address.
func listenShared(network, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var set error
		err := conn.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, set)
	}}
	return config.Listen(context.Background(), network, address)
}

// slowHealth can be told not to answer.
type slowHealth struct {
	*health.Server
	cold   atomic.Bool
	mu     sync.Mutex
	silent bool
}

// answer answers the methods of other services.
func (h *slowHealth) answer(_ any, stream grpc.ServerStream) error {
	if h.cold.Load() {
		return status.Error(codes.Unavailable, "caches are empty")
	}
	return stream.SendMsg(&grpc_health_v1.HealthCheckResponse{})
}

func (h *slowHealth) toggle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = !h.silent
}

func (h *slowHealth) Check(ctx context.Context, request *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.mu.Lock()
	silent := h.silent
	h.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Server.Check(ctx, request)
}

// testSupervisor runs two workers (args: transport, start port, command…),
// prints a line "ready" for each Up, and stops on TERM.
func testSupervisor(args []string) int {
	startPort, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	s, err := New(Options{
		Settings: Settings{
			Count: Amount{N: 2}, Transport: args[0], StartPort: startPort, Slots: Amount{N: 1}, Command: args[2:],
			BootTimeout: time.Minute, StopTimeout: 5 * time.Second,
		},
		HealthInterval: 5 * time.Second, HealthTimeout: 5 * time.Second,
		Rank: printer{}, Output: Output{Writer: os.Stderr},
	})
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	<-term
	s.Stop(context.Background())
	return 0
}

type printer struct{}

func (printer) Up(string, string, string) { fmt.Fprintln(os.Stdout, "ready") }
func (printer) Down(string)               {}
func (printer) Suspect(string, bool)      {}
func (printer) Cut(string)                {}
func (printer) Outage(bool)               {}

// recorder is a Registry that remembers, and an Activity that is told.
type recorder struct {
	mu sync.Mutex
	memory
}

// memory is what a rank was told.
type memory struct {
	up      map[string]string // worker -> address
	suspect map[string]bool   // Suspect's last words since Up or Down
	everUp  []string          // addresses, in order
	cut     []string          // workers, in order
	outages []bool            // in order
	work    Work
}

func (r *recorder) do(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
}

func (r *recorder) Up(worker, _, address string) {
	r.do(func() {
		r.up[worker] = address
		delete(r.suspect, worker)
		r.everUp = append(r.everUp, address)
	})
}

func (r *recorder) Down(worker string) {
	r.do(func() {
		delete(r.up, worker)
		delete(r.suspect, worker)
	})
}

func (r *recorder) Cut(worker string) {
	r.do(func() { r.cut, r.work.InFlight = append(r.cut, worker), 0 })
}

func (r *recorder) Outage(outage bool) {
	r.do(func() { r.outages = append(r.outages, outage) })
}

func (r *recorder) Suspect(worker string, suspect bool) {
	r.do(func() { r.suspect[worker] = suspect })
}

func (r *recorder) Activity(string) Work { return r.seen().work }

func (r *recorder) setWork(work Work) { r.do(func() { r.work = work }) }

func (r *recorder) ready() int { return len(r.seen().up) }

// seen is a copy of what the rank was told.
func (r *recorder) seen() (m memory) {
	r.do(func() {
		m = r.memory
		m.up, m.suspect = maps.Clone(m.up), maps.Clone(m.suspect)
	})
	return m
}

// house is a supervisor under test with everything around it.
type house struct {
	*Supervisor
	t    *testing.T
	rank *recorder
	logs *testkit.Buffer
	mark string // in the environment of everything it starts
}

// patience is when a wait becomes a failure. What is awaited takes 5 s at most.
const patience = time.Minute

// self is the command of a test worker.
func self(kind string) []string { return []string{testBinary(), "test-worker", kind} }

// shell is a command that runs a script in which "$0" is this binary.
func shell(script string) []string { return []string{"sh", "-c", script, testBinary()} }

func testBinary() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// newHouse makes a supervisor of one fast-checking tcp worker, edited by edit.
// At the end of the test it is stopped, and nothing may be left of it.
func newHouse(t *testing.T, edit func(*Options)) *house {
	t.Helper()
	h := &house{
		t: t, mark: plantMark(t), logs: &testkit.Buffer{},
		rank: &recorder{memory: memory{up: make(map[string]string), suspect: make(map[string]bool)}},
	}
	options := Options{
		Settings: Settings{
			Count: Amount{N: 1}, Command: self("serve"), Transport: "tcp", StartPort: testkit.FreePorts(t, 8), Slots: Amount{N: 1},
			MetricsPath: "/metrics", BootTimeout: 20 * time.Second, StopTimeout: 5 * time.Second,
		},
		HealthInterval: 50 * time.Millisecond, HealthTimeout: 2 * time.Second,
		Output: Output{Writer: h.logs}, Logger: slog.New(slog.NewTextHandler(h.logs, nil)),
		Rank: h.rank, Activity: h.rank,
	}
	edit(&options)
	s, err := New(options)
	testkit.Must(t, err)
	h.Supervisor = s
	return h
}

func startHouse(t *testing.T, edit func(*Options)) *house {
	t.Helper()
	h := newHouse(t, edit)
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		h.Stop(context.Background())
		h.checkNothingLeft()
		testkit.Eventually(t, patience, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		if t.Failed() {
			t.Log(h.logs.String())
		}
	})
	testkit.Must(t, h.Start(t.Context()))
	return h
}

// checkNothingLeft looks for processes, also zombies, right after Stop.
func (h *house) checkNothingLeft() {
	h.t.Helper()
	left := marked(h.mark)
	testkit.Want(h.t, len(left) == 0, "processes %v are left after Stop", left)
	pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
	testkit.Want(h.t, errors.Is(err, unix.ECHILD), "child %d is left after Stop (%v)", pid, err)
	testkit.Want(h.t, h.rank.ready() == 0, "the rank still has workers after Stop")
}

func (h *house) eventually(what string, done func() bool) {
	h.t.Helper()
	testkit.Eventually(h.t, patience, what, done)
}

func (h *house) waitReady(n int) {
	h.t.Helper()
	h.eventually(fmt.Sprintf("%d workers ready", n), func() bool { return h.rank.ready() == n })
}

// stopsWithin stops the house, and fails the test if that takes longer.
func (h *house) stopsWithin(ctx context.Context, limit time.Duration) (took time.Duration) {
	h.t.Helper()
	began := time.Now()
	h.Stop(ctx)
	if took = time.Since(began); took > limit {
		h.t.Errorf("Stop took %v, at most %v are expected", took, limit)
	}
	return took
}

// waitProcess waits until worker-1 is another, ready process.
func (h *house) waitProcess(old int) {
	h.t.Helper()
	h.eventually("another process", func() bool { s := h.first(); return s.PID != old && s.State == Ready })
}

// first is the status of worker-1.
func (h *house) first() Status { return h.Workers()[0] }

func (h *house) waitState(want State) {
	h.t.Helper()
	h.eventually("worker-1 to be "+want.String(), func() bool { return h.first().State == want })
}

func (h *house) signal(sig syscall.Signal) {
	h.t.Helper()
	testkit.Must(h.t, unix.Kill(h.first().PID, sig))
}

// retired counts the ends of workers for a reason.
func (h *house) retired(why Reason) (n int) {
	for _, s := range h.Workers() {
		n += s.Retired[why]
	}
	return n
}

// plantMark puts a word into the environment by which every process that
// descends from the test can be found.
func plantMark(t *testing.T) string {
	t.Helper()
	mark := strconv.FormatUint(rand.Uint64(), 36)
	t.Setenv("CABRANK_TEST_MARK", mark)
	// Otherwise a program built with -race sleeps for 1 s before it exits.
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	return "CABRANK_TEST_MARK=" + mark
}

// marked returns the live processes with the mark, this one excepted.
func marked(mark string) []int {
	var pids []int
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		environ, err := os.ReadFile(path)
		if err == nil && pid != os.Getpid() && bytes.Contains(environ, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
