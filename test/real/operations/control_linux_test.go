//go:build real || soak

package operations_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Another user is kept out by the modes, and where these are opened, by the
// kernel's word about who has connected.
func TestControlOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1").AwaitReady(1)
	folder := filepath.Dir(c.Socket)
	testkit.Must(t, os.Chmod(folder, 0o755))
	connect := func() error { return asNobody(t, c.Socket) }
	testkit.Refused(t, connect(), "permission denied")
	testkit.Must(t, os.Chmod(c.Socket, 0o777))
	err := connect()
	testkit.Want(t, err != nil && !strings.Contains(err.Error(), "permission denied"), "with mode 0777: %v", err)
	_, err = net.Dial("unix", c.Socket)
	testkit.Want(t, err == nil, "root: %v", err)
}

// SIGHUP restarts the workers and loses no call; under nohup it does nothing.
func TestHangupRestarts(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2", "--slots", "2").AwaitReady(2)
	load := harness.StartLoad(t, c.Addr, 3, harness.ShortWork)
	load.WaitAnswered(t, "", 10)
	c.Signal(syscall.SIGHUP)
	c.Await("the restart", func(s *harness.OperatorStatus) bool { return s.Generation == 2 && s.Roll != nil && !s.Roll.Running })
	load.WaitAnswered(t, "", 10)
	load.WantNoFailure(t)
	c.Stop()

	deaf := harness.StartControlledBy(t, []string{"/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`}, "--workers", "1").AwaitReady(1)
	deaf.Signal(syscall.SIGHUP)
	deaf.Must("restart")
	deaf.AwaitReady(1)
	if s := deaf.Status(); s.Generation != 2 { // it would be 3
		t.Errorf("under nohup: %+v", s)
	}
	deaf.Stop()
}

// When the terminal goes on which cabrank was started, it stops, as it always
// did.
func TestHangupOfTheTerminalStops(t *testing.T) {
	master, terminal := harness.OpenTerminal(t)
	line := harness.RunLine(t, harness.FaultWorker(t), "--workers", "1", "--control", filepath.Join(harness.ShortTempDir(t), "c.sock"))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.SysProcAttr = terminal, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := harness.StartCommand(t, cmd)
	p.WaitLog(harness.Patience, "worker ready")
	terminal.Close()
	master.Close()
	p.WantExit(harness.StopBound, 0)
	p.WaitLog(harness.Patience, "hangup")
}

// On a terminal the status has colors and replaces what stood there; a restart is
// one line that changes. Ctrl-C ends the watch with 0.
func TestCommandsOnATerminal(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1").AwaitReady(1)
	run := func(args ...string) (shown *testkit.Buffer, p *harness.Process) {
		master, terminal := harness.OpenTerminal(t)
		testkit.Must(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
		shown = &testkit.Buffer{}
		go func() { _, _ = io.Copy(shown, master) }() // ends with the terminal
		cmd := exec.Command(c.Op.Binary, append(args, "--control", c.Socket)...)
		cmd.Env = append(os.Environ(), "NO_COLOR=")
		cmd.Stdin, cmd.Stdout = terminal, terminal
		return shown, harness.StartCommand(t, cmd)
	}
	watch, watcher := run("status", "--watch=100ms")
	// A summary of two lines, an empty one, the titles and the worker.
	testkit.Eventually(t, harness.Patience, "the status in place", func() bool { return strings.Contains(watch.String(), "\x1b[5A\x1b[J") })
	if got := watch.String(); !strings.Contains(got, "\x1b[32mready\x1b[0m") || !strings.HasPrefix(got, "ready 1 of 1, queue 0, calls 0") {
		t.Errorf("the status is %q", got)
	}
	watcher.Signal(syscall.SIGINT)
	watcher.WantExit(harness.Patience, 0)
	restart, restarter := run("restart")
	restarter.WantExit(harness.Patience, 0)
	testkit.Eventually(t, harness.Patience, "the last line", func() bool { return strings.Contains(restart.String(), "restart done in ") })
	if got := restart.String(); !strings.Contains(got, "\r\x1b[K0/1 draining worker-1") || strings.Count(got, "\n") != 2 {
		t.Errorf("the restart shows %q", got)
	}
}

// asNobody connects to a socket as the user 65534 and asks for anything.
func asNobody(t *testing.T, path string) error {
	t.Helper()
	const same, nobody = ^uintptr(0), 65534
	// The user of this thread alone: package syscall would change them all.
	runtime.LockOSThread()
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, nobody, same); errno != 0 {
		t.Fatal(errno)
	}
	conn, err := net.Dial("unix", path)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same); errno != 0 {
		t.Fatal(errno)
	}
	runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	fmt.Fprint(conn, "GET /v1/status HTTP/1.1\r\nHost: cabrank\r\n\r\n")
	_, err = conn.Read(make([]byte, 1))
	return err
}
