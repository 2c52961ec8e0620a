//go:build soak && linux

package process

import (
	"errors"
	"log/slog"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

// An exec that succeeds after everybody has given up on it leaves no process.
func TestAbandonedExecIsEnded(t *testing.T) {
	c := New("", 1, nil, slog.New(slog.DiscardHandler))
	if err := c.reaper.open(); err != nil {
		t.Log(err)
	}
	c.spawner.open()
	c.Spawn(exec.Command("sleep", "1000")).Abandon()
	c.Close()
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("child %d is left (%v)", pid, err)
	}
	if len(c.reaper.ours) > 0 {
		t.Errorf("children %v are still registered", c.reaper.ours)
	}
}

// Of a process that is ending /proc shows no sockets. Those that are left are not said
// to be a stranger's: it is its end that is to be told.
func TestEndingWorkerIsNoStranger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer listener.Close()
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, cmd.Start())
	defer cmd.Wait()
	group := Group(cmd.Process.Pid)
	testkit.Eventually(t, time.Minute, "the process to end", func() bool { return isEnding(int(group)) })
	if group.HasNone([]int{int(group)}) {
		t.Error("its address is said to be deserted")
	}
	if owners, err := group.Listeners("tcp", listener.Addr().String()); err != nil || len(owners) > 0 {
		t.Errorf("owners %v, %v", owners, err)
	}
}
