package process

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open makes this process the parent of its descendants' orphans and starts to
// reap them. Stopped by close. After an error, which sandboxes can bring, only
// PID 1 gets orphans; nothing else is different.
func (r *reaper) open() error {
	r.done.Go(r.run)
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return os.NewSyscallError("prctl PR_SET_CHILD_SUBREAPER", err)
}

func (r *reaper) run() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		r.look()
		r.sweep()
		select {
		case <-died:
		case <-r.nudge:
		case <-r.stop:
			// From now on orphans go to init or another subreaper, as before open.
			_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
			r.sweep()
			return
		}
	}
}

// look tells the owners of children that these have exited. It looks for all of them at
// each SIGCHLD: a goroutine for each that waits in the kernel would take an OS thread,
// and a container may have few.
func (r *reaper) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, exited := range r.ours {
		select {
		case <-exited:
			continue
		default:
		}
		if waitable(unix.P_PID, pid) != 0 {
			close(exited)
		}
	}
}

// sweep reaps orphans until none is left, or until the kernel offers a registered child
// first; collect of that child wakes it again.
func (r *reaper) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.forking == 0 {
		pid := waitable(unix.P_ALL, 0)
		if pid <= 0 {
			return
		}
		if _, ours := r.ours[pid]; ours {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// waitable returns a child of the kind that can be reaped, without reaping it; 0 if none
// of them has exited, -1 if such a child does not exist.
func waitable(kind, id int) int {
	var info unix.Siginfo
	err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil {
		return -1
	}
	// x/sys does not name the union of siginfo_t. It begins after three ints, at
	// the alignment of a pointer, and si_pid is its first member for SIGCHLD
	// (sigaction(2)).
	const word = unsafe.Sizeof(uintptr(0))
	const offset = (unsafe.Sizeof(info.Signo)*3 + word - 1) / word * word
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), offset)))
}

// await returns when the process has exited, and leaves it a zombie: until
// collect its number, and so that of its group, cannot be used again.
func (r *reaper) await(cmd *exec.Cmd) {
	r.mu.Lock()
	exited := r.ours[cmd.Process.Pid]
	r.mu.Unlock()
	select {
	case <-exited:
		return
	case <-r.stop: // run does not look any more
	}
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// collect reaps a child that await returned for, and returns its status.
func (r *reaper) collect(cmd *exec.Cmd) *os.ProcessState {
	r.mu.Lock()
	// Wait cannot block: the process is a zombie. Its error repeats the status.
	_ = cmd.Wait()
	delete(r.ours, cmd.Process.Pid)
	r.mu.Unlock()
	r.wake()
	return cmd.ProcessState
}
