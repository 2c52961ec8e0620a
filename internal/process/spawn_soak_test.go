//go:build soak && linux

package process

import (
	"errors"
	"log/slog"
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
	pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
	testkit.Want(t, errors.Is(err, unix.ECHILD), "child %d is left (%v)", pid, err)
	testkit.Want(t, len(c.reaper.ours) == 0, "children %v are still registered", c.reaper.ours)
}

// Of a process that is ending /proc shows no sockets. Those that are left are not said
// to be a stranger's: it is its end that is to be told.
func TestEndingWorkerIsNoStranger(t *testing.T) {
	listener := testkit.Listen(t)
	defer listener.Close()
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, cmd.Start())
	defer cmd.Wait()
	group := Group(cmd.Process.Pid)
	testkit.Eventually(t, time.Minute, "the process to end", func() bool { return isEnding(int(group)) })
	testkit.Want(t, !group.HasNone([]int{int(group)}), "its address is said to be deserted")
	owners, err := group.Listeners("tcp", listener.Addr().String())
	testkit.Want(t, err == nil && len(owners) == 0, "owners %v, %v", owners, err)
}
