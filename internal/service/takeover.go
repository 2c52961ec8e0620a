package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/worker"
)

// Why a new process gives up.
var (
	errStopped = errors.New("it was asked to stop")
	errLate    = errors.New("not ready")
)

const (
	// readyPoll is how often a new process looks whether it is ready.
	readyPoll = 20 * time.Millisecond
	// bootTime is added to boot_timeout, within which workers are ready or
	// replaced, and the time of their hook, as the limit for a new process.
	bootTime = 5 * time.Second
	// restTime is how long the workers beyond min_ready are waited for at least;
	// else as long again as the first of them took.
	restTime = 5 * time.Second
)

// greet exchanges the first words with the process that this one is to replace,
// if there is one.
func (s *service) greet() error {
	p := s.inherited.Predecessor
	if p == nil {
		return nil
	}
	if err := p.Greet(s.build.Version, s.bootLimit()); err != nil {
		p.Fail(err)
		return err
	}
	s.beginWith(p.Workers)
	return nil
}

// bootLimit is how long this process may take to be ready to take over.
func (s *service) bootLimit() time.Duration {
	limit := s.cfg.Workers.BootTimeout + bootTime
	if len(s.cfg.Hooks.BeforeStart) > 0 {
		limit += s.cfg.Workers.BootTimeout // of the hook
	}
	return limit
}

// takeOver takes the listeners of a process that serves (R20), when enough endpoints are
// ready.
func (s *service) takeOver(ctx context.Context) error {
	p := s.inherited.Predecessor
	err := inTurn(
		func() error { return s.awaitReady(ctx, p) },
		func() error { return p.Take(s.inherited.Listeners) },
		s.open, p.Serving,
	)
	if err != nil {
		return err
	}
	s.log.Info("took over", "predecessor", p.PID, "version_before", p.Program, "after", time.Since(s.began).Round(time.Millisecond).String())
	go s.growUp(p) // ends with the old process, or with this one
	return nil
}

// beginWith has the new process start with fewer workers than configured, while
// those of the old one need the memory: as many as were asked for by the
// command. A number that adapts begins there, too.
func (s *service) beginWith(asked int) {
	count := &s.cfg.Workers.Count
	if count.Adapts() && asked > 0 {
		count.N = min(max(asked, count.Min), count.Max) // it grows by itself as the calls come
		return
	}
	if asked > 0 && asked < count.N {
		s.firstWorkers = asked
	}
}

// fewest bounds a number of ready workers by how many there are, as long as there
// are less than configured.
func (s *service) fewest(ready int) int {
	if s.fewer() {
		return min(ready, s.firstWorkers)
	}
	return ready
}

// fewer reports whether there are less workers than configured, because this
// process is new and the old one has not ended.
func (s *service) fewer() bool { return s.firstWorkers > 0 && !s.settings.grown.Load() }

// awaitReady returns when calls could be served, and tells the old process of
// every step. Workers that die one after the other are not waited for.
func (s *service) awaitReady(ctx context.Context, p *handover.Predecessor) error {
	limit := s.bootLimit()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	told, enough := make(map[string]bool), time.Time{}
	err := await(ctx, readyPoll, func() (bool, error) {
		select {
		case <-p.Gone():
			return false, p.Lost()
		case err := <-s.failed:
			return false, err
		default:
			may := s.mayTake(&enough, time.Now())
			s.tellReady(p, told)
			return may, s.crashing()
		}
	})
	switch {
	case errors.Is(err, errLate):
		return fmt.Errorf("not ready within %v: %s", limit, s.readiness())
	case errors.Is(err, errStopping):
		return errStopped
	}
	return err
}

// mayTake reports whether it is time to take over: enough endpoints are ready
// (R20), and so are the other workers, unless they take much longer. The old
// process serves meanwhile, and a few should not have to carry its load. It keeps
// since when they are enough; zero: they are not.
func (s *service) mayTake(since *time.Time, now time.Time) bool {
	if !s.Ready() {
		*since = time.Time{}
		return false
	}
	if since.IsZero() {
		*since = now
	}
	return s.allReady() || now.Sub(*since) > max(restTime, since.Sub(s.began))
}

// allReady reports whether all workers are that are wanted.
func (s *service) allReady() bool {
	ready := 0
	for _, w := range s.fleet() {
		if w.State == worker.Ready {
			ready++
		}
	}
	return s.workers == nil || ready >= s.workers.Wanted()
}

// crashing is an error if a worker is in a crash loop and not enough others are
// ready.
func (s *service) crashing() error {
	if w, crashes := s.crashLoop(); crashes && !s.Ready() {
		return fmt.Errorf("%s ends as soon as it is started: %s", w.Name, w.LastExit)
	}
	return nil
}

// tellReady tells of the workers that have become ready since.
func (s *service) tellReady(p *handover.Predecessor, told map[string]bool) {
	for _, w := range s.fleet() {
		if w.State == worker.Ready && !told[w.Name] {
			told[w.Name] = true
			p.Tell(handover.Progress{Step: handover.StepWorker, Worker: w.Name, Done: len(told), Total: s.workers.Wanted()})
		}
	}
}

// readiness says how many endpoints are ready, for an error.
func (s *service) readiness() string {
	endpoints := s.relay.Rank().Endpoints
	ready := 0
	for _, e := range endpoints {
		if e.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d endpoints are, min_ready is %d", ready, len(endpoints), s.fewest(s.current().Workers.MinReady))
}

// growUp goes from the number of workers that an upgrade begins with to the
// configured one, when the old process has gone.
func (s *service) growUp(p *handover.Predecessor) {
	select {
	case <-p.Gone():
	case <-s.living.Done():
		return
	}
	s.log.Info("the old process has ended", "predecessor", p.PID)
	if s.workers == nil {
		return
	}
	s.workers.Avoid(nil)
	if s.firstWorkers == 0 {
		return
	}
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	s.settings.grown.Store(true)
	err := s.apply(s.current())
	if err = errors.Join(err, s.workers.Scale(s.current().Workers.Count.N)); err != nil {
		s.log.Error("workers cannot be added", "error", err)
	}
}

// awaitPredecessor lets the old process finish its calls before this one ends,
// as far as they may take since this one has begun to drain: a service manager
// kills what is left when the main process of its service ends. The end of ctx ends
// the wait.
func (s *service) awaitPredecessor(ctx context.Context, began time.Time) {
	p := s.inherited.Predecessor
	if p == nil {
		return
	}
	select {
	case <-p.Gone():
	case <-time.After(time.Until(began.Add(s.cfg.DrainTimeout + endLimit(s.cfg)))):
		s.log.Warn("the old process has not ended", "predecessor", p.PID)
	case <-ctx.Done():
	}
}

// failTakeOver tells the old process that this one gives up, as long as it has
// not taken over.
func (s *service) failTakeOver(why error) {
	if p := s.inherited.Predecessor; p != nil {
		p.Fail(why)
	}
}
