package process

import (
	"os/exec"
	"sync"
)

// reaper is the only code that waits for children (R18).
//
// There are two kinds of children. Those that the supervisor started are registered
// here before their exit can be seen; each is reaped by its owner through collect,
// which gets the exit status. All others are orphans that the kernel gave to this
// process because it is a subreaper or PID 1; sweep reaps them.
//
// No status is ever taken from its owner: orphans wait while a fork is under way, and
// mu excludes all other looks and reaps from each other. mu is not held during a fork,
// because an exec hangs as long as its file system.
type reaper struct {
	mu      sync.Mutex
	ours    map[int]chan struct{} // by PID; on Linux look closes it when the child has exited
	forking int                   // starts under way, whose children may exit before they are in ours

	nudge chan struct{} // capacity 1: a child is new, or orphans need not wait any more
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

// wake makes run look for exited children and orphans again.
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
