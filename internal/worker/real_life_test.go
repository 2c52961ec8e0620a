//go:build (real || soak) && linux

package worker

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A worker that listens takes calls at once, on tcp and unix, with and without
// a health service, whatever the proxy variables say (R15).
func TestWorkersBecomeReady(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "GRPC_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	for _, transport := range []string{"tcp", "unix"} {
		for _, kind := range []string{"serve", "plain"} {
			t.Run(transport+" "+kind, func(t *testing.T) {
				h := startHouse(t, func(o *Options) { o.Count.N, o.Transport, o.Command = 3, transport, self(kind) })
				h.waitReady(3)
				testkit.Want(t, h.EverReady() && h.Alive(), "ever ready %v, alive %v", h.EverReady(), h.Alive())
				for _, status := range h.Workers() {
					h.eventually(status.Name+" ready", func() bool { return h.Workers()[0].State == Ready })
					testkit.Want(t, status.Network == transport && status.Address == h.rank.seen().up[status.Name] && status.PID != 0,
						"status %+v", status)
				}
			})
		}
	}
}

// What a worker is told by its arguments and environment.
func TestWorkerIsToldItsAddress(t *testing.T) {
	script := `echo "args $1 $2 $3 env $CABRANK_ADDR $PORT $CABRANK_WORKER $PROMETHEUS_EXPORTER_PORT $PROMETHEUS_EXPORTER_PATH $RAILS_MAX_THREADS $CABRANK_SLOTS $CABRANK_THREADS $4 $5"
		read line || echo "stdin ends"
		exec "$0" test-worker serve`
	h := startHouse(t, func(o *Options) {
		o.Slots.N, o.Command = 7, append(shell(script), "{addr}", "{host}", "{port}", "{slots}", "{threads}")
	})
	h.waitReady(1)
	start := h.options.StartPort
	port, metrics := strconv.Itoa(start), strconv.Itoa(start+100)
	want := "worker-1 | args 127.0.0.1:" + port + " 127.0.0.1 " + port +
		" env 127.0.0.1:" + port + " " + port + " worker-1 " + metrics + " /metrics 21 7 21 7 21\n"
	h.eventually("the worker's words", func() bool {
		return strings.Contains(h.logs.String(), want) && strings.Contains(h.logs.String(), "worker-1 | stdin ends\n")
	})
}

// R6: NOT_SERVING takes a worker out; an idle one that is silent three times is
// out too, but not killed; both come back by themselves.
func TestHealthTakesOutAndBack(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.HealthTimeout = 300 * time.Millisecond })
	h.waitReady(1)
	pid := h.first().PID
	for _, step := range []struct {
		away, back syscall.Signal
	}{{unix.SIGUSR1, unix.SIGUSR2}, {unix.SIGHUP, unix.SIGHUP}} {
		h.signal(step.away)
		h.waitState(NotServing)
		testkit.Want(t, h.rank.ready() == 0, "%v: still in the rank", step.away)
		h.signal(step.back)
		h.waitState(Ready)
	}
	testkit.Equal(t, h.first().PID, pid, "the process, which stays")
}

// R6: silence while calls are in flight is no sickness.
func TestBusyWorkerStays(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.HealthTimeout = 200 * time.Millisecond })
	h.waitReady(1)
	h.rank.setWork(Work{InFlight: 1})
	h.signal(unix.SIGHUP)
	// The prober's counter of busy findings is not visible; twice the time of the three
	// questions that take an idle worker out is.
	began := time.Now()
	h.eventually("six health intervals to pass", func() bool { return time.Since(began) > 1500*time.Millisecond })
	got := h.rank.seen().everUp
	testkit.Want(t, len(got) == 1 && h.rank.ready() == 1, "the worker left the rank: Ups %v", got)
	h.rank.setWork(Work{})
	h.waitState(NotServing)
}

// R6: a process that is stopped for a while (state T) is out of the rank without being
// asked, back on CONT, and not taken for a hung one: somebody may be looking at it. With a
// hang timeout of 0 that may take as long as it likes.
func TestStoppedProcessIsOut(t *testing.T) {
	leader, child := self("serve"), shell(`"$0" test-worker serve & wait`)
	for name, edit := range map[string]func(*Options){
		"leader":              func(o *Options) { o.Command, o.HealthInterval = leader, time.Hour },
		"child of the leader": func(o *Options) { o.Command, o.HealthInterval = child, time.Hour },
		"hang timeout":        func(o *Options) { o.HealthTimeout, o.HangTimeout = 20*time.Millisecond, time.Minute },
		"no hang timeout":     func(o *Options) { o.HealthTimeout, o.HangTimeout = 20*time.Millisecond, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			h := startHouse(t, edit)
			h.waitReady(1)
			pid, server, began := h.first().PID, h.serverPID(), time.Now()
			h.rank.setWork(Work{InFlight: 1, Owed: began.Add(-time.Hour)})
			testkit.Must(t, unix.Kill(server, unix.SIGSTOP))
			h.waitState(Stopped)
			testkit.Equal(t, h.rank.ready(), 0, "workers in the rank")
			h.eventually("many looks at it", func() bool { return time.Since(began) > 6*tickEvery })
			h.rank.setWork(Work{})
			testkit.Must(t, unix.Kill(server, unix.SIGCONT))
			h.waitState(Ready)
			got := h.first()
			testkit.Want(t, got.PID == pid, "process %d was replaced by %d", pid, got.PID)
		})
	}
}

// serverPID is the process that listens for worker-1.
func (h *house) serverPID() int {
	h.t.Helper()
	status := h.first()
	owners, err := process.Group(status.PID).Listeners(status.Network, status.Address)
	testkit.Need(h.t, err == nil && len(owners) == 1, "owners of the listener: %v, %v", owners, err)
	return owners[0]
}

// A worker that dies is out at once and comes back at its own address, however
// it dies, and nothing of its group stays.
func TestWorkerComesBack(t *testing.T) {
	for _, transport := range []string{"tcp", "unix"} {
		t.Run(transport, func(t *testing.T) {
			h := startHouse(t, func(o *Options) {
				o.Transport, o.Command = transport, shell(`sleep 1000 & "$0" test-worker serve & wait`)
			})
			h.waitReady(1)
			before, address := len(marked(h.mark)), h.first().Address
			for range 3 {
				old := h.first().PID
				h.signal(unix.SIGKILL)
				h.waitProcess(old)
				alive := process.Group(old).Members()
				testkit.Want(t, len(alive) == 0, "processes %v of the old group are left", alive)
			}
			testkit.Want(t, h.first().Address == address && len(marked(h.mark)) == before,
				"address %s, was %s; %d processes, were %d", h.first().Address, address, len(marked(h.mark)), before)
			status := h.first()
			testkit.Want(t, status.Restarts[CauseSignal] == 3 && status.LastExit == "signal: killed", "status %+v", status)
		})
	}
}

// Five exits in a minute are a crash loop, which is retried and ends.
func TestCrashLoop(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "healed")
	h := startHouse(t, func(o *Options) {
		o.Command = append(shell(`test -e "$1" || exit 7; exec "$0" test-worker serve`), flag)
	})
	h.waitState(CrashLoop)
	status := h.first()
	testkit.Want(t, status.Restarts[CauseExit] >= 5 && status.LastExit == "exit status 7", "status %+v", status)
	h.eventually("the word of the outage", func() bool { return slices.Equal(h.rank.seen().outages, []bool{true}) })
	testkit.Must(t, os.WriteFile(flag, nil, 0o600))
	h.waitState(Ready)
	h.eventually("the word of its end", func() bool { return slices.Equal(h.rank.seen().outages, []bool{true, false}) })
}

// A worker that never gets ready is killed and tried again.
func TestBootTimeout(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.BootTimeout, o.Command = 200*time.Millisecond, self("silent") })
	h.eventually("two boot timeouts", func() bool { return h.first().Restarts[CauseBootTimeout] >= 2 })
	got := h.first().Restarts
	testkit.Want(t, len(got) == 1 && !h.EverReady(), "restarts %v, ever ready %v", got, h.EverReady())
}

// Who listens on a wrong address is told where before the boot timeout.
func TestListensElsewhere(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.BootTimeout, o.Command = 2*time.Second, shell(`CABRANK_ADDR=127.0.0.1:0 exec "$0" test-worker serve`)
	})
	for _, want := range []string{
		"worker not ready yet", "boot_timeout=2s", "reason=\"nothing listens on 127.0.0.1:", "CABRANK_ADDR, PORT and {addr}", "listens_on=127.0.0.1:",
	} {
		h.eventually(want, func() bool { return strings.Contains(h.logs.String(), want) })
	}
}

// Where the keeper, a hook or the worker itself cannot be made, Start says so in one line
// and leaves nothing behind.
func TestStartFails(t *testing.T) {
	for want, edit := range map[string]func(*Options){
		"start the keeper": func(o *Options) { o.Executable = "/nonexistent/cabrank" },
		"hook before_start: fork/exec /no/such/program": func(o *Options) { o.Hooks.BeforeStart = []string{"/no/such/program"} },
		"/nonexistent/program":                          func(o *Options) { o.Command = []string{"/nonexistent/program"} },
		"unix /nonexistent/program":                     func(o *Options) { o.Transport, o.Command = "unix", []string{"/nonexistent/program"} },
	} {
		base := shortTemp(t)
		t.Setenv("XDG_RUNTIME_DIR", base)
		h := newHouse(t, edit)
		err := h.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "unix ")) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %s", err, want)
		}
		h.checkNothingLeft()
		entries, _ := os.ReadDir(base)
		testkit.Want(t, len(entries) == 0, "%v is left", entries)
	}
}

// A program that is away for a while comes back.
func TestLaterExecFails(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	install := func() {
		testkit.Must(t, os.Symlink(testBinary(), program))
	}
	install()
	h := startHouse(t, func(o *Options) { o.Command = []string{program, "test-worker", "serve"} })
	h.waitReady(1)
	testkit.Must(t, os.Remove(program))
	h.signal(unix.SIGKILL)
	h.eventually("two failed execs", func() bool { return h.first().Restarts[CauseExecFailed] >= 2 })
	testkit.Says(t, h.first().LastExit, "no such file")
	install()
	h.waitState(Ready)
}

// R19: a port that is taken before the start moves the worker to a spare one.
func TestTakenPortMovesToSpare(t *testing.T) {
	start := testkit.FreePorts(t, 8)
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(start)))
	testkit.Must(t, err)
	defer taken.Close()
	h := startHouse(t, func(o *Options) { o.Count.N, o.StartPort = 2, start })
	h.waitReady(2)
	if got, want := h.rank.seen().up["worker-1"], "127.0.0.1:"+strconv.Itoa(start+2); got != want {
		t.Errorf("worker-1 is at %s, want %s", got, want)
	}
	testkit.Equal(t, strings.Count(h.logs.String(), "port is taken"), 1, "log lines about the port")
	// The next process is at home again.
	taken.Close()
	process.Group(h.first().PID).Kill()
	want := "127.0.0.1:" + strconv.Itoa(start)
	h.eventually("worker-1 at its own port", func() bool { return h.first().State == Ready && h.rank.seen().up["worker-1"] == want })
	testkit.Equal(t, strings.Count(h.logs.String(), "port is free again"), 1, "log lines about the port")
}

// A worker that can be reached from elsewhere serves, and is warned of once, also where
// there are several; one that listens where it was told to is not.
func TestWorkerOnAllInterfaces(t *testing.T) {
	for name, test := range map[string]struct {
		listen string
		told   int
	}{
		"all interfaces":             {"0.0.0.0:$PORT", 1},
		"all interfaces, IPv6 alike": {":$PORT", 1},
		"its address":                {"127.0.0.1:$PORT", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHouse(t, func(o *Options) {
				o.Count.N, o.Command = 2, shell(`CABRANK_ADDR="`+test.listen+`" exec "$0" test-worker serve`)
			})
			h.waitReady(2)
			h.Stop(t.Context()) // looking follows readiness; after the stop both have looked
			testkit.Equal(t, strings.Count(h.logs.String(), "worker listens beyond this machine"), test.told, "times told")
		})
	}
}

// R19: a stranger that takes the port after the check never gets calls, though
// it answers SERVING; the worker moves away from it. With SO_REUSEPORT, which
// gRPC servers in C set, both would share the port.
func TestStrangerOnThePort(t *testing.T) {
	for _, kind := range []string{"silent", "share"} {
		t.Run(kind, func(t *testing.T) {
			script := `test -e "$2" && exec "$0" test-worker serve; touch "$2"
				until test -e "$3"; do sleep 0.05; done; exec "$0" test-worker "$1"`
			dir := t.TempDir()
			h := startHouse(t, func(o *Options) {
				o.Command = append(shell(script), kind, filepath.Join(dir, "second"), filepath.Join(dir, "stranger"))
			})
			h.eventually("the process", func() bool { return h.first().PID != 0 })
			address := h.first().Address
			serveAsStranger(t, address)
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "stranger"), nil, 0o600))
			h.waitState(Ready)
			testkit.Equal(t, h.first().Restarts[CauseAddressTaken], 1, "restarts for a taken address")
			for _, up := range h.rank.seen().everUp {
				testkit.Want(t, up != address, "the stranger on %s was taken for the worker", address)
			}
		})
	}
}

// serveAsStranger answers SERVING on an address until the test ends.
func serveAsStranger(t *testing.T, address string) {
	t.Helper()
	listener, err := listenShared("tcp", address)
	testkit.Must(t, err)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
}

// A process that left the group and holds the pipes delays neither the restart
// nor Stop.
func TestEscapedProcessHoldsNothingUp(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Command = shell(`setsid sh -c 'echo escaped; exec sleep 1000' & exec "$0" test-worker serve`)
	})
	escapes := func(n int) {
		h.eventually("an escape", func() bool { return strings.Count(h.logs.String(), "worker-1 | escaped\n") == n })
	}
	h.waitReady(1)
	escapes(1)
	pid := h.first().PID
	h.signal(unix.SIGKILL)
	h.waitProcess(pid)
	escapes(2)
	h.stopsWithin(context.Background(), h.options.StopTimeout+7*time.Second)
	// They are still there: it was not they who were waited for. Those that became ours
	// are no longer reaped by the supervisor.
	escaped := marked(h.mark)
	for _, pid := range escaped {
		testkit.Must(t, unix.Kill(pid, unix.SIGKILL))
	}
	testkit.Want(t, len(escaped) == 2, "processes %v have escaped, want two", escaped)
	h.eventually("the escaped to end", func() bool {
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		return errors.Is(err, unix.ECHILD) && len(marked(h.mark)) == 0
	})
}
