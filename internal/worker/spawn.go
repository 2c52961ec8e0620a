package worker

import (
	"errors"
	"os/exec"
	"runtime"
	"time"
)

// errStopping says that no worker is started any more.
var errStopping = errors.New("stopping")

// spawner starts every worker from one OS thread.
//
// The kernel sends the parent-death signal when the thread that forked ends
// (golang/go#27505), not the process. So one goroutine locks its thread, makes
// all workers, and stays until the last of them is gone (R18).
type spawner struct {
	reaper   *reaper
	stopping <-chan struct{} // closed when nothing is to be started any more
	requests chan *spawning
	stop     chan struct{}
	done     chan struct{} // closed when the thread ends; nil before open
}

// spawning is one exec under way. Who asked for it either receives from result
// or closes abandoned; what is started for nobody is killed.
type spawning struct {
	cmd       *exec.Cmd
	result    chan error
	abandoned chan struct{}
}

// newSpawner makes a spawner for so many workers, each of which has at most one
// exec under way.
func newSpawner(r *reaper, workers int, stopping <-chan struct{}) *spawner {
	return &spawner{
		reaper: r, stopping: stopping,
		requests: make(chan *spawning, workers), stop: make(chan struct{}),
	}
}

// open starts the thread. Stopped by close.
func (s *spawner) open() {
	s.done = make(chan struct{})
	go s.run()
}

func (s *spawner) run() {
	defer close(s.done)
	// Never unlocked: the thread ends with the goroutine.
	runtime.LockOSThread()
	for {
		select {
		case request := <-s.requests:
			s.serve(request)
		case <-s.stop:
			return
		}
	}
}

func (s *spawner) serve(request *spawning) {
	err := s.start(request.cmd)
	select {
	case request.result <- err:
	case <-request.abandoned:
		if err == nil {
			kill(request.cmd.Process.Pid)
			s.reaper.await(request.cmd)
			s.reaper.collect(request.cmd)
		}
	}
}

func (s *spawner) start(cmd *exec.Cmd) error {
	select {
	case <-s.stopping:
		return errStopping
	default:
		return s.reaper.start(cmd)
	}
}

// spawn has cmd started in a process group of its own. It returns at once; the
// result may never come: an exec hangs as long as the file system under it.
func (s *spawner) spawn(cmd *exec.Cmd) *spawning {
	cmd.SysProcAttr = groupLeader()
	request := &spawning{cmd: cmd, result: make(chan error), abandoned: make(chan struct{})}
	s.requests <- request
	return request
}

// close ends the thread, and with it, by signal, whatever it started that is
// still alive. It leaves an exec behind that hangs for longer than restLimit.
func (s *spawner) close() {
	close(s.stop)
	if s.done == nil {
		return
	}
	select {
	case <-s.done:
	case <-time.After(restLimit):
	}
}
