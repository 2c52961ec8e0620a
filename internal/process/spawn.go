package process

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"time"
)

// ErrStopping means that nothing is started any more.
var ErrStopping = errors.New("stopping")

// spawner starts all children from one OS thread.
//
// The kernel sends the parent-death signal when the thread that forked ends
// (golang/go#27505), not the process. So one goroutine locks its thread, makes
// all of them, and stays until the last of them is gone (R18).
type spawner struct {
	reaper   *reaper
	stopping <-chan struct{} // closed when nothing is to be started any more
	requests chan *Spawning
	errands  chan *Spawning // a send here may block
	stop     chan struct{}
	done     chan struct{} // closed when the thread ends; nil before open
}

// Spawning is one exec under way. Who has asked for it either receives from Result or
// calls Abandon.
type Spawning struct {
	// Result gets how it went: nil if the program has been executed. It may never come: an
	// exec hangs as long as the file system under it.
	Result    chan error
	cmd       *exec.Cmd
	abandoned chan struct{}
	late      bool // made even during Stop
}

// Abandon has the process killed if it is started after all.
func (s *Spawning) Abandon() { close(s.abandoned) }

// newSpawner makes a spawner; no more than most requests are under way.
func newSpawner(r *reaper, most int, stopping <-chan struct{}) *spawner {
	return &spawner{
		reaper: r, stopping: stopping,
		requests: make(chan *Spawning, most), errands: make(chan *Spawning), stop: make(chan struct{}),
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

func (s *spawner) serve(request *Spawning) {
	err := s.start(request)
	select {
	case request.Result <- err:
	case <-request.abandoned:
		if err == nil {
			Group(request.cmd.Process.Pid).Kill()
			s.reaper.await(request.cmd)
			s.reaper.collect(request.cmd)
		}
	}
}

func (s *spawner) start(request *Spawning) error {
	select {
	case <-s.stopping:
		if !request.late {
			return ErrStopping
		}
	default:
	}
	return explainExec(request.cmd.Path, s.reaper.start(request.cmd))
}

// Spawn requests the start of cmd in a process group of its own, and returns at once.
func (c *Children) Spawn(cmd *exec.Cmd) *Spawning {
	request := newSpawning(cmd)
	c.spawner.requests <- request
	return request
}

func newSpawning(cmd *exec.Cmd) *Spawning {
	cmd.SysProcAttr = groupLeader()
	return &Spawning{cmd: cmd, Result: make(chan error), abandoned: make(chan struct{})}
}

// Start starts cmd like Spawn and waits for the result, no longer than ctx. A late one is
// started even while all is stopping. After ctx ended the exec may go on for a while; the
// process that it starts is killed.
func (c *Children) Start(ctx context.Context, cmd *exec.Cmd, late bool) error {
	request := newSpawning(cmd)
	request.late = late
	select {
	case c.spawner.errands <- request:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-request.Result:
		return err
	case <-ctx.Done():
		request.Abandon()
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
