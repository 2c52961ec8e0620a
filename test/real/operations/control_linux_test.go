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
	"slices"
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
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1")
	c.AwaitReady(1)
	folder := filepath.Dir(c.Socket)
	testkit.Must(t, os.Chmod(folder, 0o755))
	connect := func() error { return asNobody(t, c.Socket) }
	if err := connect(); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("with mode 0600: %v", err)
	}
	testkit.Must(t, os.Chmod(c.Socket, 0o777))
	if err := connect(); err == nil || strings.Contains(err.Error(), "permission denied") {
		t.Errorf("with mode 0777: %v", err)
	}
	if _, err := net.Dial("unix", c.Socket); err != nil {
		t.Errorf("root: %v", err)
	}
	c.Stop()
}

// SIGHUP restarts the workers and loses no call; under nohup it does nothing.
func TestHangupRestarts(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "2", "--slots", "2")
	c.AwaitReady(2)
	load := harness.StartLoad(t, c.Addr, 3, harness.ShortWork)
	load.WaitAnswered(t, "", 10)
	c.Signal(syscall.SIGHUP)
	c.Await("the restart", func(s *harness.OperatorStatus) bool { return s.Generation == 2 && s.Roll != nil && !s.Roll.Running })
	load.WaitAnswered(t, "", 10)
	if failed := harness.Failures(load.Stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].Err)
	}
	c.Stop()

	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	args := slices.Concat([]string{"-c", `trap "" HUP; exec "$0" "$@"`, harness.CabrankBinary(t), "run", "--listen", "127.0.0.1:0", "--probes", "off",
		"--metrics", "off", "--transport", "unix", "--workers", "1", "--control", socket, "--"}, harness.FaultWorker(t))
	deaf := harness.StartProcess(t, nil, "/bin/sh", args...)
	op := harness.NewOperator(t, socket)
	ready := func(generation int) {
		t.Helper()
		testkit.Must(t, op.Await(harness.Patience, "a ready worker", func(s *harness.OperatorStatus) bool { return s.Ready == 1 && s.Generation == generation }))
	}
	ready(1)
	deaf.Signal(syscall.SIGHUP)
	testkit.Must(t, op.Run(harness.Patience, "restart"))
	ready(2) // it would be 3
	deaf.Signal(syscall.SIGTERM)
	if code := deaf.ExitCode(harness.StopBound); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// When the terminal goes on which cabrank was started, it stops, as it always
// did.
func TestHangupOfTheTerminalStops(t *testing.T) {
	master, terminal := harness.OpenTerminal(t)
	log := &testkit.Buffer{}
	cmd := exec.Command(harness.CabrankBinary(t), slices.Concat([]string{"run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off",
		"--transport", "unix", "--workers", "1", "--control", filepath.Join(harness.ShortTempDir(t), "c.sock"), "--"}, harness.FaultWorker(t))...)
	cmd.Stdin, cmd.Stderr = terminal, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.WaitDelay = time.Second
	testkit.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testkit.Eventually(t, harness.Patience, "a ready worker", func() bool { return strings.Contains(log.String(), "worker ready") })
	terminal.Close()
	master.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v\n%s", err, log)
		}
	case <-time.After(harness.StopBound):
		t.Fatalf("goes on without its terminal\n%s", log)
	}
	if got := log.String(); !strings.Contains(got, "hangup") {
		t.Errorf("the log does not say why:\n%s", got)
	}
}

// On a terminal the status has colors and replaces what stood there; a restart is
// one line that changes. Ctrl-C ends the watch with 0.
func TestCommandsOnATerminal(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t), "--workers", "1")
	c.AwaitReady(1)
	run := func(args ...string) (shown *testkit.Buffer, cmd *exec.Cmd) {
		master, terminal := harness.OpenTerminal(t)
		testkit.Must(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
		shown = &testkit.Buffer{}
		go func() { _, _ = io.Copy(shown, master) }() // ends with the terminal
		cmd = exec.Command(c.Op.Binary, append(args, "--control", c.Socket)...)
		cmd.Env = append(os.Environ(), "NO_COLOR=")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		testkit.Must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return shown, cmd
	}
	watch, cmd := run("status", "--watch=100ms")
	// A summary of two lines, an empty one, the titles and the worker.
	testkit.Eventually(t, harness.Patience, "the status in place", func() bool { return strings.Contains(watch.String(), "\x1b[5A\x1b[J") })
	if got := watch.String(); !strings.Contains(got, "\x1b[32mready\x1b[0m") || !strings.HasPrefix(got, "ready 1 of 1, queue 0, calls 0") {
		t.Errorf("the status is %q", got)
	}
	testkit.Must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ends the watch with %v", err)
	}
	restart, cmd := run("restart")
	if err := cmd.Wait(); err != nil {
		t.Errorf("restart: %v", err)
	}
	testkit.Eventually(t, harness.Patience, "the last line", func() bool { return strings.Contains(restart.String(), "restart done in ") })
	if got := restart.String(); !strings.Contains(got, "\r\x1b[K0/1 draining worker-1") || strings.Count(got, "\n") != 2 {
		t.Errorf("the restart shows %q", got)
	}
	c.Stop()
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
