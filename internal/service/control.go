package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/worker"
)

// lookEvery is how often commands that have no events of their own look how far
// things are.
const lookEvery = 100 * time.Millisecond

// cutTime is how long the answers of cut calls may take: the rest of a message that
// is on its way is waited for, a second at most.
const cutTime = 1500 * time.Millisecond

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
	s.addresses = append(s.addresses, admin.Listener{Kind: handover.Control, Address: socket.Path()})
	s.addPage(handover.Control, admin.ServeControl(socket, admin.Controls{Observer: s, Fleet: s, Process: s, Journal: s.orders.journal}, s.log))
	return nil
}

// unlessStopping names the one reason for everything that fails during a stop.
func (s *service) unlessStopping(err error) error {
	if err != nil && s.orders.serving.isOver() {
		return errStopping
	}
	return err
}

// Restart implements admin.Fleet: it reloads the configuration and replaces all workers.
// A command that came with it holds until cabrank ends, unless the workers do not get
// ready with it.
func (s *service) Restart(ctx context.Context, request admin.RestartRequest, tell func(admin.Event)) error {
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to restart, only upstreams"}
	}
	if err := s.current().CommandFits(request.Command); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	found, err := s.reloadAndTell()
	if err != nil {
		return s.unlessStopping(fmt.Errorf("not restarted: %w", err))
	}
	if len(found.Applied)+len(found.NeedsRestart)+len(found.NeedsUpgrade) > 0 {
		tell(admin.Event{Reload: &found})
	}
	if request.Command != nil {
		s.orders.command.Store(&request.Command)
	}
	command, with := s.orders.command.Load(), s.current()
	tell(admin.Event{Step: "replacing workers", Total: s.workers.Wanted(), LimitSeconds: s.workers.RollLimit().Seconds()})
	err = s.workers.Roll(ctx, worker.Change{Command: request.Command, Force: request.Force}, tellProgress(tell))
	switch {
	case err == nil:
		s.orders.proven.Store(command)
		s.rolled(with)
	case !errors.Is(err, worker.ErrTakenOver): // else the one that took over judges it
		s.orders.command.CompareAndSwap(command, s.orders.proven.Load())
	}
	return s.unlessStopping(err)
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

// Reload implements admin.Process.
func (s *service) Reload(_ context.Context, _ admin.ReloadRequest, tell func(admin.Event)) error {
	found, err := s.reloadAndTell()
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

// Drain implements admin.Fleet.
func (s *service) Drain(ctx context.Context, request admin.DrainRequest, tell func(admin.Event)) error {
	workers, outside := s.names()
	switch {
	case slices.Contains(workers, request.Target) && request.Undo:
		return &admin.MisuseError{Reason: request.Target + " is a worker: it is replaced, which cannot be undone"}
	case slices.Contains(workers, request.Target):
		tell(admin.Event{Step: "replacing", Worker: request.Target, Total: 1, LimitSeconds: s.workers.ReplaceLimit().Seconds()})
		return s.unlessStopping(s.workers.Replace(ctx, request.Target, request.Force, tellProgress(tell)))
	case slices.Contains(outside, request.Target):
		return s.unlessStopping(s.drainUpstream(ctx, request, tell))
	}
	there := strings.Join(append(workers, outside...), ", ")
	return &admin.MisuseError{Reason: fmt.Sprintf("there is no worker or upstream %q; there are: %s", request.Target, cmp.Or(there, "none"))}
}

// drainUpstream keeps new calls from an upstream and waits for those that run
// there, or gives it calls again.
func (s *service) drainUpstream(ctx context.Context, request admin.DrainRequest, tell func(admin.Event)) error {
	if err := s.upstreams.SetDrained(request.Target, !request.Undo); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	if request.Undo {
		return nil
	}
	timeout := s.current().DrainTimeout
	if request.Force {
		timeout = 0
	}
	tell(admin.Event{Step: "draining", Worker: request.Target, LimitSeconds: (timeout + cutTime).Seconds()})
	if err := s.awaitUpstream(ctx, request.Target, timeout, tell); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	before := s.outside.Activity(request.Target).Cuts
	s.outside.Cut(request.Target)
	err := s.awaitUpstream(ctx, request.Target, cutTime, func(admin.Event) {})
	tellCut(tell, int(s.outside.Activity(request.Target).Cuts)-int(before))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // what is cut has been told
	}
	return err
}

// awaitUpstream waits until no call runs at an upstream, for so long at most.
func (s *service) awaitUpstream(ctx context.Context, name string, timeout time.Duration, tell func(admin.Event)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	told := 0
	return await(ctx, lookEvery, func() (bool, error) {
		calls := s.outside.Activity(name).InFlight
		if calls > 0 && calls != told {
			tell(admin.Event{Step: "draining", Worker: name, Note: cli.Plural(calls, "call")})
			told = calls
		}
		return calls == 0, nil
	})
}

// tellCut tells how many calls were cut, if there were any.
func tellCut(tell func(admin.Event), calls int) {
	if calls > 0 {
		tell(admin.Event{CallsCut: calls})
	}
}

// names returns those of the workers that there are, and of endpoints that someone else runs.
func (s *service) names() (workers, outside []string) {
	for _, w := range s.fleet() {
		if w.State != worker.Vacant {
			workers = append(workers, w.Name)
		}
	}
	for _, u := range s.upstreams.Endpoints() {
		outside = append(outside, u.Name)
	}
	return workers, outside
}

// Scale implements admin.Fleet.
func (s *service) Scale(ctx context.Context, request admin.ScaleRequest, tell func(admin.Event)) error {
	if s.workers == nil {
		return &admin.MisuseError{Reason: "there are no workers to scale, only upstreams"}
	}
	n, note := request.Workers, ""
	if request.Auto {
		if s.autoscale.Follow() {
			tell(admin.Event{Step: "scaling", Note: "as the calls need"})
			return nil
		}
		n, note = s.current().Workers.Count.N, "to the number in the configuration: workers.count has no bounds"
	}
	limit := s.workers.ScaleLimit(n)
	if err := s.autoscale.Hold(n); err != nil {
		return &admin.MisuseError{Reason: err.Error()}
	}
	tell(admin.Event{Step: "scaling", Total: n, Note: note, LimitSeconds: limit.Seconds()})
	before := s.cutByScale()
	err := s.awaitScale(ctx, n, limit, tell)
	tellCut(tell, s.cutByScale()-before)
	return s.unlessStopping(err)
}

// cutByScale counts the calls that were cut because their workers were too many.
func (s *service) cutByScale() (calls int) {
	for _, w := range s.workers.Workers() {
		calls += w.Cut[worker.ReasonScale]
	}
	return calls
}

// awaitScale waits until there are n workers, all ready, and nobody above that.
func (s *service) awaitScale(ctx context.Context, n int, limit time.Duration, tell func(admin.Event)) error {
	late := fmt.Errorf("not all of %d workers are ready, or others have not ended, after %v: see cabrank status", n, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	told := ""
	return await(ctx, lookEvery, func() (bool, error) {
		now := s.scaleStep(n)
		if now.Text() != told {
			told = now.Text()
			tell(now)
		}
		if wanted := s.workers.Wanted(); wanted != n {
			return false, fmt.Errorf("another scale took over: %d workers", wanted)
		}
		// With a note it may be one of those that go.
		if loop, crashes := s.crashLoop(); crashes && now.Completed < n && now.Note == "" {
			return false, fmt.Errorf("%s is in a crash loop (%s); the others go on", loop.Name, loop.LastExit)
		}
		return now.Completed == n && now.Note == "", nil
	})
}

// scaleStep tells how many of n workers are ready.
func (s *service) scaleStep(n int) admin.Event {
	ready, all := 0, 0
	for _, w := range s.fleet() {
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
		e.Note = cli.Plural(all-n, "worker") + " ending"
	}
	return e
}

// Stop implements admin.Process.
func (s *service) Stop(_ context.Context, request admin.StopRequest, tell func(admin.Event)) error {
	tell(admin.Event{Step: "stopping", LimitSeconds: stopLimit(s.current(), request.Now).Seconds()})
	s.orders.askToStop(stopRequest{now: request.Now})
	told := 0
	_ = await(s.orders.alive, lookEvery, func() (bool, error) { // which is the only end of it
		if calls := s.inFlight(); calls != told {
			tell(admin.Event{Step: "draining", Note: cli.Plural(calls, "call")})
			told = calls
		}
		return false, nil
	})
	tellCut(tell, s.orders.cut)
	return nil
}

// stopSlack is what a stop may take beyond its own time limits (R17): 3 s for the last
// answers, and 7 s for processes that do not die. docs/control.md counts with it.
const stopSlack = 10 * time.Second

// stopLimit is the longest time that a stop can take (R17). now leaves out the waits
// for calls.
func stopLimit(cfg *config.Config, now bool) time.Duration {
	limit := endLimit(cfg) + stopSlack
	if cfg.Tracing.Endpoint != "" {
		limit += lastSpans
	}
	if now {
		return limit
	}
	return limit + cfg.PreStopDelay + cfg.DrainTimeout
}

// endLimit is how long workers without calls may take to end.
func endLimit(cfg *config.Config) time.Duration {
	if len(cfg.Hooks.BeforeStop) > 0 {
		return cfg.Workers.BootTimeout + cfg.Workers.StopTimeout
	}
	return cfg.Workers.StopTimeout
}
