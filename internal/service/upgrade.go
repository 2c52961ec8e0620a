package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/handover"
)

// endTime is added to what its workers need for a new process that ends again.
const endTime = 10 * time.Second

// errStopping is why what was begun is given up when cabrank itself stops: SIGTERM
// wins.
var errStopping = errors.New("cabrank is stopping")

// Upgrade implements admin.Process: it starts the program again and hands the listeners
// to the new process (R20).
//
// It returns nil when the new process serves; from then on this one drains and
// ends by itself. After an error it goes on as before. A stop gives it up.
func (s *service) Upgrade(_ context.Context, request admin.UpgradeRequest, tell func(admin.Event)) error {
	if request.Workers < 0 {
		return &admin.MisuseError{Reason: fmt.Sprintf("%d workers on the new side; allowed: 0, for as many as configured, and more", request.Workers)}
	}
	err := s.upgrade(request.Workers, func(p handover.Progress) {
		tell(admin.Event{Step: p.Step, Worker: p.Worker, Note: p.Note, Completed: p.Done, Total: p.Total})
	})
	if err == nil {
		return nil
	}
	s.log.Error("no upgrade, nothing has changed", "error", err)
	if refused, ok := errors.AsType[*handover.RefusedError](err); ok && len(refused.Faults) > 0 {
		return &admin.FaultsError{Reason: "the new process refuses what it was started with, nothing has changed", Faults: refused.Faults}
	}
	return err
}

// upgrade has the new side begin with so many workers, 0: as configured.
func (s *service) upgrade(workers int, tell func(handover.Progress)) error {
	if err := s.mayUpgrade(); err != nil {
		return err
	}
	select {
	case s.upgrading <- struct{}{}:
		defer func() { <-s.upgrading }()
	default:
		return s.unlessStopping(errors.New("an upgrade is under way already"))
	}
	if s.public.isOver() {
		return errors.New("another process has taken over already")
	}
	s.log.Info("upgrading", "program", s.program)
	successor, err := handover.Upgrade(s.orders.serving, s.upgradeOptions(workers), tell)
	if err != nil {
		return err
	}
	s.successor = successor
	s.public.end(nil)
	return nil
}

// mayUpgrade says why there is no upgrade here and now.
func (s *service) mayUpgrade() error {
	if os.Getpid() == 1 {
		return errors.New("cabrank is PID 1, with which the container would end: roll the container instead (cabrank restart replaces the workers)")
	}
	if p := s.inherited.Predecessor; p != nil {
		select {
		case <-p.Gone():
		default:
			return errors.New("the last upgrade is not over: the old process still finishes its calls, see drain_timeout")
		}
	}
	if s.program == "" {
		return errors.New("the path of this program is not known: the system does not tell it, and the first argument is not it")
	}
	return fileThere(s.current().File)
}

// fileThere is an error if the file that this process has read, if any, has gone. A
// new process would find none, take all defaults, and then the calls. What is in
// the file is for that process to judge, which may know more keys.
func fileThere(name string) error {
	if name == "" {
		return nil
	}
	if _, err := os.Stat(name); err != nil {
		return fmt.Errorf("the configuration has gone, a new cabrank would begin with the defaults: %w", err)
	}
	return nil
}

func (s *service) upgradeOptions(workers int) handover.Options {
	var ports []int
	if s.workers != nil {
		ports = s.workers.Ports()
		if workers == 0 && s.current().Workers.Count.Adapts() {
			workers = s.workers.Wanted() // the load does not begin anew
		}
	}
	return handover.Options{
		Version: s.build.Version, Path: s.program, Args: os.Args[1:], Environ: s.inherited.Environ,
		Workers: workers, Ports: ports, Listeners: s.inherited.Listeners,
		Start: s.launch, Over: s.handOver, EndLimit: endLimit(s.current()) + endTime,
	}
}

// launch starts a process that is no worker. Below a service manager it is that one's
// child; one of this process belongs to the one place that reaps.
func (s *service) launch(cmd *exec.Cmd) (wait func() *os.ProcessState, err error) {
	managed := s.inherited.Notifier != nil
	if s.workers == nil || managed {
		return handover.Start(cmd, managed)
	}
	return s.workers.Launch(cmd)
}

// handOver is called when the new process serves, before that one hears that
// it is alone.
func (s *service) handOver(pid int) {
	s.inherited.Notifier.MainPID(pid)
	s.relay.ReleaseListeners()
	for _, page := range s.pages {
		page.Release()
	}
	s.log.Info("handed over", "successor", pid, "calls_in_flight", s.inFlight(), "calls_waiting", s.relay.Waiting())
}
