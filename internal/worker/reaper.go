package worker

import (
	"os/exec"
	"sync"
)

// reaper is the one place where children are waited for (R18).
//
// Children come in two kinds. Those that the supervisor started are registered
// here before anybody can see them exit; each is reaped by its owner through
// collect, which gets the exit status. All others are orphans that the kernel
// gave to this process because it is a subreaper or PID 1; sweep reaps them.
//
// No status is ever taken from its owner: while a fork is under way orphans
// wait, and everything else that looks or reaps excludes each other by mu. mu is
// not held during a fork, because an exec hangs as long as its file system.
type reaper struct {
	mu      sync.Mutex
	ours    map[int]chan struct{} // by PID; closed when the child has exited, where one place looks (Linux)
	forking int                   // starts under way, whose children may exit before they are in ours

	nudge chan struct{} // capacity 1: there is a new child, or what kept orphans waiting is over
	stop  chan struct{}
	done  sync.WaitGroup
}

func newReaper() *reaper {
	return &reaper{
		ours:  make(map[int]chan struct{}),
		nudge: make(chan struct{}, 1),
		stop:  make(chan struct{}),
	}
}

// start runs cmd.Start and registers the child.
func (r *reaper) start(cmd *exec.Cmd) error {
	r.mu.Lock()
	r.forking++
	r.mu.Unlock()
	err := cmd.Start()
	r.mu.Lock()
	if err == nil {
		r.ours[cmd.Process.Pid] = make(chan struct{})
	}
	r.forking--
	r.mu.Unlock()
	r.wake()
	return err
}

// wake has children and orphans be looked for again.
func (r *reaper) wake() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// close ends the reaping of orphans. Those that are still alive pass to the
// next subreaper or to init when this process ends.
func (r *reaper) close() {
	close(r.stop)
	r.done.Wait()
}
