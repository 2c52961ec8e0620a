package worker

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"time"
)

// errStopping means that no worker is started any more.
var errStopping = errors.New("stopping")

// spawner starts every worker and every hook from one OS thread.
//
// The kernel sends the parent-death signal when the thread that forked ends
// (golang/go#27505), not the process. So one goroutine locks its thread, makes
// all workers, and stays until the last of them is gone (R18).
type spawner struct {
	reaper   *reaper
	stopping <-chan struct{} // closed when nothing is to be started any more
	requests chan *spawning
	errands  chan *spawning // of hooks; a send here may block
	stop     chan struct{}
	done     chan struct{} // closed when the thread ends; nil before open
}

// spawning is one exec under way. Its requester either receives from result or closes
// abandoned; a process whose request was abandoned is killed.
type spawning struct {
	cmd       *exec.Cmd
	result    chan error
	abandoned chan struct{}
	late      bool // made even during Stop
}

// newSpawner makes a spawner for a number of workers, each of which has at most one
// exec under way.
func newSpawner(r *reaper, workers int, stopping <-chan struct{}) *spawner {
	return &spawner{
		reaper: r, stopping: stopping,
		requests: make(chan *spawning, workers), errands: make(chan *spawning), stop: make(chan struct{}),
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
		case errand := <-s.errands:
			s.serve(errand)
		case <-s.stop:
			return
		}
	}
}

func (s *spawner) serve(request *spawning) {
	err := s.start(request)
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

func (s *spawner) start(request *spawning) error {
	select {
	case <-s.stopping:
		if !request.late {
			return errStopping
		}
	default:
	}
	return explainExec(request.cmd.Path, s.reaper.start(request.cmd))
}

// spawn requests the start of cmd in a process group of its own. It returns at once; the
// result may never come: an exec hangs as long as the file system under it.
func (s *spawner) spawn(cmd *exec.Cmd) *spawning {
	request := newSpawning(cmd)
	s.requests <- request
	return request
}

func newSpawning(cmd *exec.Cmd) *spawning {
	cmd.SysProcAttr = groupLeader()
	return &spawning{cmd: cmd, result: make(chan error), abandoned: make(chan struct{})}
}

// errand starts the cmd of a hook like spawn and waits for the result, no longer than
// ctx. A late one is started even during Stop. After ctx ended the exec may go on for a
// while; the process that it starts is killed.
func (s *spawner) errand(ctx context.Context, cmd *exec.Cmd, late bool) error {
	request := newSpawning(cmd)
	request.late = late
	select {
	case s.errands <- request:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-request.result:
		return err
	case <-ctx.Done():
		close(request.abandoned)
		return context.Cause(ctx)
	}
}

// close ends the thread, and with it, by signal, all processes that it started. It
// leaves an exec behind that hangs for longer than restLimit.
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
