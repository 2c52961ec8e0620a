//go:build real || soak

package real_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// managerRole as the first argument makes the test binary a service manager as
// far as cabrank can tell: it passes sockets, and learns the end of every process
// of the service, whoever its parent was.
const managerRole = "manager"

// runManager starts a program with sockets and prints "started PID", then "ended
// PID CODE" for every process that ends under it, and ends with the last.
//
// Arguments: names and addresses of sockets as "name=host:port", then "--", then
// the program and its arguments.
func runManager(args []string, out io.Writer) error {
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

// managed is a cabrank under a manager, through all its upgrades.
type managed struct {
	*Cabrank

	t       *testing.T
	main    int    // process that serves
	program string // that an upgrade starts; the test may replace it
	runtime string // XDG_RUNTIME_DIR
	control *operator
}

// startManaged starts a copy of cabrank with sockets of the manager, and waits
// until it listens. Its end is checked when the test ends.
func startManaged(t *testing.T, env, sockets []string, args ...string) *managed {
	t.Helper()
	m := &managed{t: t, runtime: shortTempDir(t)}
	m.program = filepath.Join(t.TempDir(), "cabrank")
	m.install()
	line := slices.Concat([]string{managerRole}, sockets, []string{"--", m.program, "run",
		"--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, args)
	env = append(env, "XDG_RUNTIME_DIR="+m.runtime, "TMPDIR="+m.runtime)
	m.Cabrank = &Cabrank{Process: StartProcess(t, env, self(t), line...), ended: true}
	t.Cleanup(m.stopAtEnd)
	m.wait(patience, "the start", func() bool { return lineWith(m.Output(), "started ") != "" })
	m.main, _ = strconv.Atoi(strings.TrimPrefix(lineWith(m.Output(), "started "), "started "))
	m.Addr = m.listening("listening")
	m.ProbesAddr = m.listening("probes listening")
	m.MetricsAddr = m.listening("metrics listening")
	m.control = &operator{binary: cabrankBinary(t), socket: m.listening("control listening")}
	return m
}

// install puts a program where the next upgrade finds it, as a package manager
// does: the file of the running one is not touched.
func (m *managed) install() {
	m.t.Helper()
	content, err := os.ReadFile(cabrankBinary(m.t))
	if err != nil {
		m.t.Fatal(err)
	}
	m.installText(content)
}

func (m *managed) installText(content []byte) {
	m.t.Helper()
	if err := os.WriteFile(m.program+".new", content, 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(m.program+".new", m.program); err != nil {
		m.t.Fatal(err)
	}
}

// stopAtEnd stops what serves at the end of a test that has not done so.
func (m *managed) stopAtEnd() {
	if !m.t.Failed() && !m.Exited() {
		m.stop()
	}
}

// stop ends the service and holds it to R17: exit code 0, nothing left, no file.
func (m *managed) stop() {
	m.t.Helper()
	m.signal(m.main, syscall.SIGTERM)
	m.wantEnd(m.main, 0)
	m.wantNothingLeft()
}

// wantEnd waits for the end of a process and compares its exit code, -1 for a
// signal.
func (m *managed) wantEnd(pid, code int) {
	m.t.Helper()
	if got, want := m.waitEnd(pid), fmt.Sprintf("ended %d %d", pid, code); got != want {
		m.t.Errorf("%q, want %q", got, want)
	}
}

// waitEnd returns the manager's line about the end of a process.
func (m *managed) waitEnd(pid int) string {
	m.t.Helper()
	prefix := fmt.Sprintf("ended %d ", pid)
	testkit.Eventually(m.t, stopBound, fmt.Sprintf("the end of %d", pid), func() bool { return lineWith(m.Output(), prefix) != "" })
	return lineWith(m.Output(), prefix)
}

// wantGone waits for the end of a process whose exit code its parent sees.
func (m *managed) wantGone(pid int) {
	m.t.Helper()
	testkit.Eventually(m.t, stopBound, fmt.Sprintf("the end of %d", pid), func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// wantNothingLeft waits until the manager has no process left, and looks for
// files.
func (m *managed) wantNothingLeft() {
	m.t.Helper()
	if code := m.ExitCode(5 * time.Second); code != 0 {
		m.t.Errorf("the manager ended with %d", code)
	}
	m.WaitNoneLeft(3 * time.Second)
	if left := filesIn(m.t, m.runtime); len(left) > 0 {
		m.t.Errorf("left in the runtime directory: %v", left)
	}
}

// startUpgrade asks for an upgrade and returns the process that is started.
func (m *managed) startUpgrade() int {
	m.t.Helper()
	before := len(m.LogLines("starting"))
	m.signal(m.main, syscall.SIGUSR2)
	m.wait(patience, "the new process", func() bool { return len(m.LogLines("starting")) > before })
	for _, pid := range m.Family() {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) == "cabrank" && m.isNew(pid) {
			return pid
		}
	}
	m.t.Fatal("no new process was found")
	return 0
}

// isNew reports whether a process was started by the main one as a successor.
func (m *managed) isNew(pid int) bool {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return pid != m.main && !strings.HasSuffix(string(cmdline), "\x00keeper\x00")
}

// upgrade has a new process take over by SIGUSR2, and waits until the old one has
// ended.
func (m *managed) upgrade() {
	m.t.Helper()
	m.upgradeBy(func() { m.signal(m.main, syscall.SIGUSR2) })
}

// upgradeBy is upgrade by other means.
func (m *managed) upgradeBy(ask func()) {
	m.t.Helper()
	old, taken, gone := m.main, len(m.LogLines("took over")), len(m.LogLines("the old process has ended"))
	ask()
	m.wait(patience, "a new process to take over", func() bool { return len(m.LogLines("took over")) > taken })
	handed := m.LogLines("handed over")
	next, err := strconv.Atoi(handed[len(handed)-1].Text("successor"))
	if err != nil {
		m.t.Fatal(err)
	}
	m.main = next
	m.wantEnd(old, 0)
	m.wait(patience, "the new process to see the end of the old", func() bool {
		return len(m.LogLines("the old process has ended")) > gone
	})
	if now, err := m.control.status(); err != nil || now.PID != m.main {
		m.t.Errorf("the control answers %+v, %v; want pid %d", now, err, m.main)
	}
}

// successor returns the process that has taken over last.
func (m *managed) successor() int {
	m.t.Helper()
	handed := m.LogLines("handed over")
	var pid int
	if _, err := fmt.Sscan(handed[len(handed)-1].Text("successor"), &pid); err != nil {
		m.t.Fatal(err)
	}
	return pid
}

// self is the test binary.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
