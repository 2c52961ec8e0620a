package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// groupLeader makes a child the leader of a process group that gets TERM when
// the thread that forked it ends (R18). TERM, not KILL: a worker whose cabrank
// was killed still closes its files and transactions; the keeper kills processes that
// do not end within 2 s.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
}
