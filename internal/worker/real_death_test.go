//go:build (real || soak) && linux

package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/testkit"
)

// startSupervisor runs a supervisor of two workers as a process of its own and
// waits until both are ready.
func startSupervisor(t *testing.T, transport string, startPort int, command []string) *exec.Cmd {
	t.Helper()
	args := append([]string{"test-supervisor", transport, strconv.Itoa(startPort)}, command...)
	cmd := exec.Command(testBinary(), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for range 2 {
		testkit.Need(t, lines.Scan(), "the supervisor ended early")
	}
	return cmd
}

// R18: after kill -9 of cabrank nothing of its workers is left in the end, children of
// children and those that ignore TERM included, all of which would live for as long as
// they are let; and the next start serves.
func TestNothingOutlivesKill9(t *testing.T) {
	for _, test := range []struct {
		name, transport string
		command         []string
		processes       int // with supervisor and keeper
	}{
		{"forking", "unix", shell(`(sleep 1000 & sleep 1000 & wait) & exec "$0" test-worker serve`), 10},
		{"deaf to TERM", "tcp", shell(`trap "" TERM; "$0" test-worker stubborn & wait`), 6},
		{"forking, slow keeper", "unix", shell(`(sleep 1000 & sleep 1000 & wait) & exec "$0" test-worker serve`), 10},
		{"stopped", "tcp", shell(`sh -c 'kill -STOP $$' & exec "$0" test-worker serve`), 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", shortTemp(t))
			if strings.Contains(test.name, "slow keeper") {
				t.Setenv("CABRANK_TEST_KEEPER_PAUSE", "0.3s") // of the keeperPatience that it has
			}
			mark, port := plantMark(t), testkit.FreePorts(t, 8)
			t.Cleanup(func() {
				if t.Failed() {
					logProcesses(t, marked(mark))
				}
			})
			cmd := startSupervisor(t, test.transport, port, test.command)
			testkit.Eventually(t, patience, "all processes", func() bool { return len(marked(mark)) == test.processes })
			teaseKeeper(t, mark)
			kill9(t, cmd)
			waitMarked(t, mark)
			again := startSupervisor(t, test.transport, port, self("serve"))
			testkit.Must(t, again.Process.Signal(unix.SIGTERM))
			err := again.Wait()
			testkit.Want(t, err == nil, "second supervisor: %v", err)
			left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "*"))
			testkit.Want(t, len(left) == 0, "%v is left in the runtime directory", left)
		})
	}
}

// logProcesses tells what processes do.
func logProcesses(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		t.Logf("left: %q %s", bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}), stat)
	}
}

// teaseKeeper sends the keeper what ends other programs.
func teaseKeeper(t *testing.T, mark string) {
	t.Helper()
	keeper := keeperAmong(t, mark)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		testkit.Must(t, unix.Kill(keeper, sig))
	}
}

// keeperAmong waits for the one keeper among the processes with the mark.
func keeperAmong(t *testing.T, mark string) int {
	t.Helper()
	var keepers []int
	testkit.Eventually(t, patience, "one keeper", func() bool {
		keepers = slices.DeleteFunc(marked(mark), func(pid int) bool {
			line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			return !strings.HasSuffix(string(line), "\x00keeper\x00")
		})
		return len(keepers) == 1
	})
	return keepers[0]
}

// kill9 kills a supervisor.
func kill9(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	testkit.Must(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// waitMarked waits until these are all processes that have the mark.
func waitMarked(t *testing.T, mark string, pids ...int) {
	t.Helper()
	testkit.Eventually(t, patience, fmt.Sprintf("only %v to be left", pids), func() bool { return slices.Equal(marked(mark), pids) })
}

// R18: with a keeper that does nothing the kernel still ends the leaders, and
// not before cabrank dies, however many threads have come and gone.
func TestKernelEndsLeadersWithoutKeeper(t *testing.T) {
	mark, port := plantMark(t), testkit.FreePorts(t, 8)
	cmd := startSupervisor(t, "tcp", port, self("serve"))
	keeper := keeperAmong(t, mark)
	testkit.Must(t, unix.Kill(keeper, unix.SIGSTOP))
	kill9(t, cmd)
	waitMarked(t, mark, keeper)
	testkit.Must(t, unix.Kill(keeper, unix.SIGCONT))
	waitMarked(t, mark)
}

// A keeper that is killed is replaced, and the new one knows the groups.
func TestKeeperIsReplaced(t *testing.T) {
	mark, port := plantMark(t), testkit.FreePorts(t, 8)
	cmd := startSupervisor(t, "tcp", port, shell(`trap "" TERM; "$0" test-worker stubborn & wait`))
	old := keeperAmong(t, mark)
	testkit.Must(t, unix.Kill(old, unix.SIGKILL))
	testkit.Eventually(t, patience, "another keeper", func() bool { return keeperAmong(t, mark) != old })
	// Cabrank may die as soon as the new keeper exists: its list is in the pipe.
	kill9(t, cmd)
	waitMarked(t, mark)
}

// A keeper whose cabrank dies before it has said that it has begun does its work.
func TestKeeperNobodyHears(t *testing.T) {
	worker := exec.Command("sleep", "1000")
	worker.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	testkit.Must(t, worker.Start())
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	heard, says, err := os.Pipe()
	testkit.Must(t, err)
	_ = heard.Close()
	defer says.Close()
	keeper := exec.Command(testBinary(), "keeper")
	keeper.Stdin, keeper.Stdout = strings.NewReader(fmt.Sprintf("add %d\n", worker.Process.Pid)), says
	err = keeper.Run()
	testkit.Want(t, err == nil, "the keeper: %v", err)
	_ = worker.Process.Kill() // in vain, for it has ended
	err = <-ended
	testkit.Want(t, err != nil && err.Error() == "signal: terminated", "the worker: %v", err)
}

// A keeper that does not answer holds nothing up, and does not stay.
func TestFrozenKeeperDoesNotHoldStop(t *testing.T) {
	h := startHouse(t, func(*Options) {})
	h.waitReady(1)
	testkit.Must(t, unix.Kill(keeperAmong(t, h.mark), unix.SIGSTOP))
	h.stopsWithin(context.Background(), h.options.StopTimeout+7*time.Second)
}

// R18: orphans are reaped, and no worker's exit status is lost to that.
func TestOrphansAreReaped(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.Count.N, o.Command = 2, shell(`(true &); (true &); exit 7`) })
	h.eventually("crash loops", func() bool { return h.Workers()[0].State == CrashLoop && h.Workers()[1].State == CrashLoop })
	for _, status := range h.Workers() {
		testkit.Want(t, len(status.Restarts) == 1 && status.Restarts[CauseExit] >= 5 && status.LastExit == "exit status 7",
			"%s: %+v", status.Name, status)
	}
	log := h.logs.String() // it goes on; the line of a crash loop repeats the status
	testkit.Equal(t, strings.Count(log, `msg="worker ended"`), strings.Count(log, `how="exit status 7"`)-strings.Count(log, "crash loop"),
		"ends, not all with status 7")
	h.eventually("no zombie", func() bool { return zombies() == 0 })
}

// zombies counts this process's dead children.
func zombies() int {
	count := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		content, _ := os.ReadFile(path)
		fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
		if len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(os.Getpid()) {
			count++
		}
	}
	return count
}

// Stop ends whatever a worker does, and leaves nothing. A worker that is not deaf to
// TERM does not cost the time until KILL, which is a minute here.
func TestStopNeverHangs(t *testing.T) {
	for _, test := range []struct {
		name    string
		command []string
		ready   bool
		deaf    bool
		prepare func(*house)
	}{
		{"polite", self("serve"), true, false, nil},
		{"booting", self("silent"), false, false, nil},
		{"crashing", []string{"false"}, false, false, nil},
		{"deaf to TERM", self("stubborn"), true, true, nil},
		{"deaf shell", shell(`trap "" TERM; "$0" test-worker stubborn & wait`), true, true, nil},
		{"stopped", self("serve"), true, false, func(h *house) { h.signal(unix.SIGSTOP) }},
		{"stopped and deaf", self("stubborn"), true, true, func(h *house) { h.signal(unix.SIGSTOP) }},
		{"killed in the same moment", self("serve"), true, false, func(h *house) { h.signal(unix.SIGKILL) }},
		{"forking", shell(`(sleep 1000 & wait) & "$0" test-worker serve & wait`), true, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			until, least, most := time.Minute, time.Duration(0), 20*time.Second
			if test.deaf {
				until, least, most = 500*time.Millisecond, 500*time.Millisecond, 7500*time.Millisecond // as doc.go says
			}
			h := startHouse(t, func(o *Options) { o.Count.N, o.StopTimeout, o.Command = 2, until, test.command })
			if test.ready {
				h.waitReady(2)
			}
			if test.prepare != nil {
				test.prepare(h)
			}
			took := h.stopsWithin(context.Background(), most)
			testkit.Want(t, took >= least, "Stop took %v, at least %v are expected", took, least)
		})
	}
}

// A leader that leaves at TERM does not cost its children their time.
func TestStopWaitsForTheWholeGroup(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.StopTimeout = time.Minute
		o.Command = shell(`sh -c 'trap "sleep 0.3; echo finished; exit 0" TERM; echo armed; while :; do sleep 0.05; done' & exec "$0" test-worker serve`)
	})
	h.waitReady(1)
	h.eventually("the trap", func() bool { return strings.Contains(h.logs.String(), "armed") })
	h.Stop(context.Background())
	testkit.Want(t, strings.Contains(h.logs.String(), "worker-1 | finished\n"), "the rest of the group was killed before its time")
}

// The end of the context skips to KILL, for every Stop that waits.
func TestStopContextKills(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.StopTimeout, o.Command = time.Minute, self("stubborn") })
	h.waitReady(1)
	patient := make(chan struct{})
	go func() {
		defer close(patient)
		h.Stop(context.Background())
	}()
	h.waitState(Stopping)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.stopsWithin(ctx, 20*time.Second)
	<-patient
}

// Stop at any moment of start, boot, crash and readiness.
func TestStopAtRandomMoments(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 20))
	for i := range 12 {
		command := shell(`[ $CABRANK_WORKER = worker-1 ] || exit 1; sleep 0.05; exec "$0" test-worker serve`)
		h := newHouse(t, func(o *Options) { o.Count.N, o.Command = 2, command })
		moment := time.Duration(random.IntN(300)) * time.Millisecond
		began := time.Now()
		started := make(chan error, 1)
		go func() { started <- h.Start(context.Background()) }()
		testkit.Eventually(t, patience, "the moment", func() bool { return time.Since(began) >= moment })
		h.Stop(context.Background())
		if err := <-started; err != nil && !errors.Is(err, process.ErrStopping) && !strings.Contains(err.Error(), "Start after") {
			t.Errorf("moment %d (%v): %v", i, moment, err)
		}
		h.checkNothingLeft()
	}
}
