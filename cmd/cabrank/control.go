package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/worker"
)

const (
	// lookEvery is how often commands that have no events of their own look how
	// far things are.
	lookEvery = 100 * time.Millisecond

	// stopSlack is what a stop may take beyond its own time limits: the GOAWAYs,
	// the last answers, the death of processes (R17).
	stopSlack = 9 * time.Second
)

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
	return c.s.restart(ctx, request, tell)
}

// restart reloads the configuration and replaces all workers. A command that
// came with it holds until cabrank ends, unless the workers do not get ready
// with it.
func (s *service) restart(ctx context.Context, request admin.RestartRequest, tell func(admin.Event)) error {
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to restart, only upstreams"}
	}
	found, err := s.reloadAndTell()
	if err != nil {
		return fmt.Errorf("not restarted: %w", err)
	}
	if len(found.Applied)+len(found.NeedsRestart)+len(found.NeedsUpgrade) > 0 {
		tell(admin.Event{Reload: &found})
	}
	before, with := s.orders.command.Load(), s.current()
	if request.Command != nil {
		s.orders.command.Store(&request.Command)
	}
	tell(admin.Event{Step: "replacing workers", Total: s.workers.Wanted(), LimitSeconds: s.workers.RollLimit().Seconds()})
	change := worker.Change{Command: request.Command, Force: request.Force}
	err = s.workers.Roll(ctx, change, tellProgress(tell))
	if err != nil && request.Command != nil && !errors.Is(err, worker.ErrTakenOver) {
		s.orders.command.CompareAndSwap(&request.Command, before)
	}
	if err == nil {
		s.rolled(with)
	}
	return err
}

// tellProgress passes on the steps of a replacement.
func tellProgress(tell func(admin.Event)) func(worker.Progress) {
	return func(p worker.Progress) {
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

// Drain implements admin.Fleet.
func (c controls) Drain(ctx context.Context, request admin.DrainRequest, tell func(admin.Event)) error {
	names := c.s.workerNames()
	switch {
	case slices.Contains(names, request.Target) && request.Undo:
		return &admin.MisuseError{Reason: request.Target + " is a worker: it is replaced, which cannot be undone"}
	case slices.Contains(names, request.Target):
		return c.s.workers.Replace(ctx, request.Target, request.Force, tellProgress(tell))
	}
	outside := c.s.upstreamNames()
	if slices.Contains(outside, request.Target) {
		return c.s.drainUpstream(ctx, request, tell)
	}
	there := strings.Join(append(names, outside...), ", ")
	return &admin.MisuseError{Reason: fmt.Sprintf("there is no worker or upstream %q; there are: %s", request.Target, cmp.Or(there, "none"))}
}

// drainUpstream keeps new calls from an upstream and waits for those that run
// there, or gives it calls again.
func (s *service) drainUpstream(ctx context.Context, request admin.DrainRequest, tell func(admin.Event)) error {
	if err := s.upstreams.Hold(request.Target, !request.Undo); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	if request.Undo {
		return nil
	}
	tell(admin.Event{Step: "draining", Worker: request.Target, LimitSeconds: s.current().DrainTimeout.Seconds()})
	timeout := s.current().DrainTimeout
	if request.Force {
		timeout = 0
	}
	limit, look := time.NewTimer(timeout), time.NewTicker(lookEvery)
	defer limit.Stop()
	defer look.Stop()
	for told := 0; ; {
		select {
		case <-look.C:
			calls := s.outside.activity(request.Target).InFlight
			if calls == 0 {
				return nil
			}
			if calls != told {
				tell(admin.Event{Step: "draining", Worker: request.Target, Note: plural(calls, "call")})
				told = calls
			}
		case <-limit.C:
			s.outside.Cut(request.Target)
			return nil
		case <-ctx.Done():
			return errStopping
		}
	}
}

// upstreamNames returns the names of the endpoints that someone else runs.
func (s *service) upstreamNames() []string {
	var names []string
	for _, u := range s.upstreams.Endpoints() {
		names = append(names, u.Name)
	}
	return names
}

// workerNames returns the names of the workers that there are.
func (s *service) workerNames() []string {
	if s.workers == nil {
		return nil
	}
	var names []string
	for _, w := range s.workers.Workers() {
		if w.State != worker.Vacant {
			names = append(names, w.Name)
		}
	}
	return names
}

// Scale implements admin.Fleet.
func (c controls) Scale(ctx context.Context, request admin.ScaleRequest, tell func(admin.Event)) error {
	s := c.s
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to scale, only upstreams"}
	}
	n := request.Workers
	if request.Auto {
		if s.autoscale.Follow() {
			tell(admin.Event{Step: "scaling", Note: "as the calls need"})
			return nil
		}
		n = s.current().Workers.Count
	}
	limit := s.workers.ScaleLimit(n)
	if err := s.autoscale.Hold(n); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	tell(admin.Event{Step: "scaling", Total: n, LimitSeconds: limit.Seconds()})
	return s.awaitScale(ctx, n, tell)
}

// awaitScale waits until there are n workers, all ready, and nobody above that.
func (s *service) awaitScale(ctx context.Context, n int, tell func(admin.Event)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	limit := time.NewTimer(s.workers.RollLimit())
	defer limit.Stop()
	told := ""
	for {
		now := s.scaleStep(n)
		if stepText(now) != told {
			told = stepText(now)
			tell(now)
		}
		o := s.workers.Overview()
		switch loop := s.crashLoop(); {
		case o.Wanted != n:
			return fmt.Errorf("another scale took over: %d workers", o.Wanted)
		case now.Completed == n && now.Note == "":
			return nil
		case loop != "":
			return fmt.Errorf("%s; the others go on", loop)
		}
		select {
		case <-look.C:
		case <-limit.C:
			return fmt.Errorf("not all of %d workers are ready, see cabrank status", n)
		case <-ctx.Done():
			return errStopping
		}
	}
}

// scaleStep tells how many of n workers are ready.
func (s *service) scaleStep(n int) admin.Event {
	ready, all := 0, 0
	for _, w := range s.workers.Workers() {
		switch w.State {
		case worker.Vacant:
			continue
		case worker.Ready, worker.Suspect:
			ready++
		default:
		}
		all++
	}
	e := admin.Event{Step: "ready", Completed: min(ready, n), Total: n}
	if all > n { // some of them may not have been told yet
		e.Note = plural(all-n, "worker") + " ending"
	}
	return e
}

// crashLoop names a worker that will not get ready soon, and why.
func (s *service) crashLoop() string {
	for _, w := range s.workers.Workers() {
		if w.State == worker.CrashLoop {
			return fmt.Sprintf("%s is in a crash loop (%s)", w.Name, w.LastExit)
		}
	}
	return ""
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
	if s.relay.Serving() { // else Ready would say too much
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

// Stop implements admin.Process.
func (c controls) Stop(ctx context.Context, request admin.StopRequest, tell func(admin.Event)) error {
	s := c.s
	limit := s.current().PreStopDelay + s.current().DrainTimeout + s.current().Workers.StopTimeout + stopSlack
	if request.Now {
		limit = s.current().Workers.StopTimeout + stopSlack
	}
	tell(admin.Event{Step: "stopping", LimitSeconds: limit.Seconds()})
	s.orders.askToStop(stopRequest{now: request.Now})
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	told := 0
	for {
		select {
		case <-look.C:
			if calls := s.inFlight(); calls != told {
				tell(admin.Event{Step: "draining", Note: plural(calls, "call")})
				told = calls
			}
		case <-s.orders.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
