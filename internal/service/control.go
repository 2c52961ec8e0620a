package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/worker"
)

// lookEvery is how often commands that have no events of their own look how far
// things are.
const lookEvery = 100 * time.Millisecond

// controls joins the control socket to the parts of the service. It implements
// admin.Observer, admin.Fleet and admin.Process.
type controls struct {
	s      *service
	memory *footprints
}

// autoControl is the word of the key control for a path that nobody has chosen,
// noControl that for no control at all.
const (
	autoControl = "auto"
	noControl   = "off"
)

// startControl opens the control socket as the configuration says. One that
// nobody has asked for by name is not worth a failed start.
func (s *service) startControl() error {
	if s.cfg.Control == noControl {
		return nil
	}
	socket, err := s.listenControl()
	switch {
	case err != nil && s.cfg.Control == autoControl:
		s.log.Warn("no control: cabrank status, restart and the like will not find this process", "error", err)
		return nil
	case err != nil:
		return err
	}
	here := controls{s, &footprints{root: os.DirFS("/")}}
	s.controlSocket = socket
	s.control = admin.ServeControl(socket, admin.Controls{Observer: here, Fleet: here, Process: here, Journal: s.orders.journal}, s.log)
	go s.follow(s.control) // ends with the server
	return nil
}

// Restart implements admin.Fleet.
func (c controls) Restart(ctx context.Context, request admin.RestartRequest, tell func(admin.Event)) error {
	return c.s.unlessStopping(c.s.restart(ctx, request, tell))
}

// unlessStopping names the one reason for everything that fails during a stop.
func (s *service) unlessStopping(err error) error {
	if err != nil && s.orders.stopping.Load() {
		return errStopping
	}
	return err
}

// restart reloads the configuration and replaces all workers. A command that
// came with it holds until cabrank ends, unless the workers do not get ready
// with it.
func (s *service) restart(ctx context.Context, request admin.RestartRequest, tell func(admin.Event)) error {
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to restart, only upstreams"}
	}
	if err := s.current().CommandFits(request.Command); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	found, err := s.reloadAndTell()
	if err != nil {
		return fmt.Errorf("not restarted: %w", err)
	}
	if len(found.Applied)+len(found.NeedsRestart)+len(found.NeedsUpgrade) > 0 {
		tell(admin.Event{Reload: &found})
	}
	if request.Command != nil {
		s.orders.command.Store(&request.Command)
	}
	command, with := s.orders.command.Load(), s.current()
	tell(admin.Event{Step: "replacing workers", Total: s.workers.Wanted(), LimitSeconds: s.workers.RollLimit().Seconds()})
	change := worker.Change{Command: request.Command, Force: request.Force}
	err = s.workers.Roll(ctx, change, tellProgress(tell))
	switch {
	case err == nil:
		s.orders.proven.Store(command)
		s.rolled(with)
	case !errors.Is(err, worker.ErrTakenOver): // else the one that took over judges it
		s.orders.command.CompareAndSwap(command, s.orders.proven.Load())
	}
	return err
}

// tellProgress passes on the steps of a replacement.
func tellProgress(tell func(admin.Event)) func(worker.Progress) {
	return func(p worker.Progress) {
		if p.Step == worker.StepCut {
			tellCut(tell, p.Cut)
			return
		}
		step := string(p.Step)
		if p.Worker == "" { // one more is through
			step = "replaced"
		}
		tell(admin.Event{Step: step, Worker: p.Worker, Note: p.Note, Completed: p.Done, Total: p.Total})
	}
}

// tellHandover passes on the steps of an upgrade.
func tellHandover(tell func(admin.Event)) func(handover.Progress) {
	return func(p handover.Progress) {
		tell(admin.Event{Step: p.Step, Worker: p.Worker, Note: p.Note, Completed: p.Done, Total: p.Total})
	}
}

// Reload implements admin.Process.
func (c controls) Reload(_ context.Context, _ admin.ReloadRequest, tell func(admin.Event)) error {
	found, err := c.s.reloadAndTell()
	if err == nil {
		tell(admin.Event{Reload: &found})
	}
	return err
}

// reloadAndTell reloads the configuration, logs what came of it and keeps it for
// the status.
func (s *service) reloadAndTell() (admin.Reload, error) {
	if s.Ready() { // else Ready would say too much
		s.inherited.Notifier.Reloading()
		defer s.inherited.Notifier.Ready()
	}
	found, err := s.reload()
	result := admin.ReloadStatus{Time: time.Now().UTC(), Reload: found}
	if err != nil {
		result.Error = s.logRefusal(err)
	} else {
		s.log.Info("configuration reloaded", "applied", found.Applied, "needs_restart", found.NeedsRestart, "needs_upgrade", found.NeedsUpgrade)
	}
	s.orders.reloaded.Store(&result)
	return found, err
}

// Upgrade implements admin.Process.
func (c controls) Upgrade(ctx context.Context, request admin.UpgradeRequest, tell func(admin.Event)) error {
	if request.Workers < 0 {
		return &admin.MisuseError{Reason: fmt.Sprintf("%d workers on the new side; allowed: 0, for as many as configured, and more", request.Workers)}
	}
	return c.s.upgrade(ctx, request.Workers, tellHandover(tell))
}
