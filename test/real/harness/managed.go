package harness

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// ManagerRole as the first argument makes the test binary a service manager as
// far as cabrank can tell: it passes sockets, and learns the end of every process
// of the service, whoever its parent was.
const ManagerRole = "manager"

// runManager starts a program with sockets and prints "started PID", then "ended
// PID CODE" for every process that ends under it, and ends with the last.
//
// Arguments: names and addresses of sockets as "name=host:port", then "--", then
// the program and its arguments.
func runManager(args []string) error {
	out := os.Stdout
	end := slices.Index(args, "--")
	program, sockets := args[end+1:], args[:end]
	if err := becomeSubreaper(); err != nil {
		return err
	}
	// LISTEN_PID is the number of the program itself, which a shell knows.
	cmd := exec.Command("sh", "-c", `[ -z "$LISTEN_FDS" ] || export LISTEN_PID=$$; exec "$0" "$@"`)
	cmd.Args = append(cmd.Args, program...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if err := passSockets(cmd, sockets); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	closeFiles(cmd.ExtraFiles)
	fmt.Fprintln(out, "started", cmd.Process.Pid)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return nil //nolint:nilerr // ECHILD: no process is left
		default:
			fmt.Fprintln(out, "ended", pid, status.ExitStatus())
		}
	}
}

func passSockets(cmd *exec.Cmd, sockets []string) error {
	if len(sockets) == 0 {
		return nil
	}
	var names []string
	for _, socket := range sockets {
		name, address, _ := strings.Cut(socket, "=")
		on, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		file, err := on.(*net.TCPListener).File()
		if err != nil {
			return err
		}
		on.Close()
		names, cmd.ExtraFiles = append(names, name), append(cmd.ExtraFiles, file)
	}
	cmd.Env = append(cmd.Env, fmt.Sprint("LISTEN_FDS=", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	return nil
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

// Managed is a cabrank under a manager, through all its upgrades.
type Managed struct {
	*Cabrank

	t       testing.TB
	Main    int    // process that serves
	program string // that an upgrade starts; the test may replace it
	runtime string // XDG_RUNTIME_DIR
	Control *Operator
}

// StartManaged starts a copy of cabrank with sockets of the manager, and waits
// until it listens. Its end is checked when the test ends.
func StartManaged(t testing.TB, env, sockets []string, args ...string) *Managed {
	t.Helper()
	m := &Managed{t: t, runtime: ShortTempDir(t)}
	m.program = filepath.Join(t.TempDir(), "cabrank")
	m.Install()
	line := slices.Concat([]string{ManagerRole}, sockets, []string{"--", m.program, "run",
		"--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, ownPorts(t, args), args)
	env = append(env, "XDG_RUNTIME_DIR="+m.runtime, "TMPDIR="+m.runtime)
	m.Cabrank = &Cabrank{Process: StartProcess(t, env, OwnBinary(t), line...), Ended: true}
	t.Cleanup(m.stopAtEnd)
	m.Wait(Patience, "the start", func() bool { return LineWith(m.Output(), "started ") != "" })
	m.Main, _ = strconv.Atoi(strings.TrimPrefix(LineWith(m.Output(), "started "), "started "))
	m.Addr = m.Listening("listening")
	m.ProbesAddr = m.Listening("probes listening")
	m.MetricsAddr = m.Listening("metrics listening")
	m.Control = &Operator{Binary: CabrankBinary(t), Socket: m.Listening("control listening")}
	return m
}

// Install puts a program where the next upgrade finds it, as a package manager
// does: the file of the running one is not touched.
func (m *Managed) Install() {
	m.t.Helper()
	content, err := os.ReadFile(CabrankBinary(m.t))
	testkit.Must(m.t, err)
	m.InstallText(content)
}

// InstallText is Install of another program.
func (m *Managed) InstallText(content []byte) {
	m.t.Helper()
	testkit.Must(m.t, os.WriteFile(m.program+".new", content, 0o755))
	testkit.Must(m.t, os.Rename(m.program+".new", m.program))
}

// stopAtEnd stops what serves at the end of a test that has not done so.
func (m *Managed) stopAtEnd() {
	if !m.t.Failed() && !m.Exited() {
		m.End()
	}
}

// End ends the service and holds it to R17: exit code 0, nothing left, no file.
func (m *Managed) End() {
	m.t.Helper()
	m.SignalTo(m.Main, syscall.SIGTERM)
	m.WantEnd(m.Main, 0)
	m.WantNothingLeft()
}

// WantEnd waits for the end of a process and compares its exit code, -1 for a
// signal.
func (m *Managed) WantEnd(pid, code int) {
	m.t.Helper()
	got, want := m.WaitEnd(pid), fmt.Sprintf("ended %d %d", pid, code)
	testkit.Want(m.t, got == want, "%q, want %q", got, want)
}

// WaitEnd returns the manager's line about the end of a process.
func (m *Managed) WaitEnd(pid int) string {
	m.t.Helper()
	prefix := fmt.Sprintf("ended %d ", pid)
	testkit.Eventually(m.t, StopBound, fmt.Sprintf("the end of %d", pid), func() bool { return LineWith(m.Output(), prefix) != "" })
	return LineWith(m.Output(), prefix)
}

// WantGone waits for the end of a process whose exit code its parent sees.
func (m *Managed) WantGone(pid int) {
	m.t.Helper()
	testkit.Eventually(m.t, StopBound, fmt.Sprintf("the end of %d", pid), func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// WantNothingLeft waits until the manager has no process left, and looks for
// files.
func (m *Managed) WantNothingLeft() {
	m.t.Helper()
	m.WantExit(Patience, 0)
	m.WaitNoneLeft(Patience)
	WantEmpty(m.t, m.runtime)
}

// StartUpgrade asks for an upgrade and returns the process that is started.
func (m *Managed) StartUpgrade() int {
	m.t.Helper()
	before := len(m.LogLines("starting"))
	m.SignalTo(m.Main, syscall.SIGUSR2)
	m.Wait(Patience, "the new process", func() bool { return len(m.LogLines("starting")) > before })
	for _, pid := range m.Family() {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) == "cabrank" && m.isNew(pid) {
			return pid
		}
	}
	m.t.Fatal("no new process was found")
	return 0
}

// isNew reports whether a process was started by the main one as a successor.
func (m *Managed) isNew(pid int) bool {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return pid != m.Main && !strings.HasSuffix(string(cmdline), "\x00keeper\x00")
}

// Upgrade has a new process take over by SIGUSR2, and waits until the old one has
// ended.
func (m *Managed) Upgrade() {
	m.t.Helper()
	m.UpgradeBy(func() { m.SignalTo(m.Main, syscall.SIGUSR2) })
}

// UpgradeBy is upgrade by other means.
func (m *Managed) UpgradeBy(ask func()) {
	m.t.Helper()
	old, before, gone := m.Main, len(m.LogLines(HandedOver)), len(m.LogLines("the old process has ended"))
	ask()
	m.Main = m.successor(before)
	m.WantEnd(old, 0)
	m.Wait(Patience, "the new process to see the end of the old", func() bool {
		return len(m.LogLines("the old process has ended")) > gone
	})
	now, err := m.Control.Status()
	testkit.Want(m.t, err == nil && now.PID == m.Main, "the control answers %+v, %v; want pid %d", now, err, m.Main)
}

// Successor waits until the first process that served tells which one has taken over.
func (m *Managed) Successor() int {
	m.t.Helper()
	return m.successor(0)
}

// successor waits for one more line about a process that has taken over. It is the old
// one that says it: whether the new one has said before that it took over is open.
func (m *Managed) successor(before int) int {
	m.t.Helper()
	m.Wait(Patience, "a new process to take over", func() bool { return len(m.LogLines(HandedOver)) > before })
	handed := m.LogLines(HandedOver)
	pid, err := strconv.Atoi(handed[len(handed)-1].Text("successor"))
	testkit.Must(m.t, err)
	return pid
}

// OwnBinary is the test binary.
func OwnBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	return path
}

// WantNoProcess is WantNothingLeft after a kill -9, which may leave files for
// the next start to sweep.
func (m *Managed) WantNoProcess() {
	m.t.Helper()
	m.ExitCode(Patience)
	m.WaitNoneLeft(Patience)
}

// WantScrape reads the metrics page, which shows the process that serves.
func (m *Managed) WantScrape() {
	m.t.Helper()
	answer, err := http.Get("http://" + m.MetricsAddr + "/metrics")
	testkit.Must(m.t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	testkit.Want(m.t, err == nil && strings.Contains(string(page), "cabrank_"), "metrics: %d bytes, %v", len(page), err)
}

// WantNoStrangers looks into a worker of the process that serves: nothing of
// cabrank's descriptors, and no variable that was meant for cabrank.
func (m *Managed) WantNoStrangers() {
	m.t.Helper()
	pids := m.ReadyPIDs("worker-1")
	pid := pids[len(pids)-1]
	ours := socketsOf(m.t, m.Main)
	testkit.Want(m.t, len(ours) >= 3, "cabrank has the sockets %v", ours)
	for _, socket := range socketsOf(m.t, pid) {
		testkit.Want(m.t, !slices.Contains(ours, socket), "worker %d has cabrank's %s", pid, socket)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	testkit.Must(m.t, err)
	for _, name := range []string{"CABRANK_UPGRADE_FD", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC"} {
		if strings.Contains("\x00"+string(environ), "\x00"+name+"=") {
			m.t.Errorf("worker %d has the variable %s", pid, name)
		}
	}
}

// socketsOf returns the sockets that a process has open, "socket:[INODE]".
func socketsOf(t testing.TB, pid int) []string {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	testkit.Must(t, err)
	var sockets []string
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:") {
			sockets = append(sockets, target)
		}
	}
	return sockets
}

// WantUnharmed holds that the load has not noticed anything, and that nothing
// is left beside the old process, its keeper and its workers.
func (m *Managed) WantUnharmed(l *Load) {
	m.t.Helper()
	l.WaitAnswered(m.t, "", 20)
	for _, o := range l.Outcomes() {
		o.WantOK(m.t)
	}
	testkit.Eventually(m.t, Patience, "only the manager, cabrank, its keeper and two workers", func() bool {
		return len(m.Family()) == 5
	})
	testkit.Equal(m.t, m.Probe("readiness"), http.StatusOK, "readiness")
}
