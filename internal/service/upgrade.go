package service

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/handover"
)

// endTime is added to what its workers need for a new process that ends again.
const endTime = 10 * time.Second

// errStopping is why what was begun is given up when cabrank itself stops: SIGTERM
// wins.
var errStopping = errors.New("cabrank is stopping")

// upgrades are the attempts to hand over, one at a time.
type upgrades struct {
	over chan struct{} // closed when another process has taken over

	mu        sync.Mutex
	stopping  bool                    // nothing is begun any more
	cancel    context.CancelCauseFunc // of the one under way; nil if none is
	running   sync.WaitGroup
	successor *handover.Successor // held, not used: see there
}

// upgrade starts the program again and hands the listeners to the new process
// (R20). workers is how many that one begins with, 0: as configured.
//
// It returns nil when the new process serves; from then on this one drains and
// ends by itself. After an error it goes on as before. Ending ctx gives it up.
func (s *service) upgrade(ctx context.Context, workers int, tell func(handover.Progress)) error {
	err := s.tryUpgrade(ctx, workers, tell)
	if err == nil {
		return nil
	}
	s.log.Error("no upgrade, nothing has changed", "error", err)
	if refused, ok := errors.AsType[*handover.RefusedError](err); ok && len(refused.Faults) > 0 {
		return &admin.FaultsError{Reason: "the new process refuses what it was started with, nothing has changed", Faults: refused.Faults}
	}
	return err
}

func (s *service) tryUpgrade(ctx context.Context, workers int, tell func(handover.Progress)) error {
	if err := s.mayUpgrade(); err != nil {
		return err
	}
	ctx, err := s.upgrades.begin(ctx)
	if err != nil {
		return err
	}
	s.log.Info("upgrading", "program", s.program)
	successor, err := handover.Upgrade(ctx, s.upgradeOptions(workers), tell)
	s.upgrades.done(successor)
	return err
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

func (s *service) upgradeOptions(workers int) handover.Options {
	if workers == 0 && s.current().Workers.Count.Adapts() && s.workers != nil {
		workers = s.workers.Wanted() // the load does not begin anew
	}
	var ports []int
	if s.workers != nil {
		ports = s.workers.Ports()
	}
	return handover.Options{
		Version: s.build.Version, Path: s.program, Args: os.Args[1:], Environ: s.inherited.Environ,
		Workers: workers, Ports: ports, Listeners: s.inherited.Listeners,
		Start: s.launch, Over: s.handedOver, EndLimit: endLimit(s.current()) + endTime,
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

// handedOver is called when the new process serves, before that one hears that
// it is alone.
func (s *service) handedOver(pid int) {
	s.inherited.Notifier.MainPID(pid)
	s.relay.ReleaseListeners()
	if s.controlSocket != nil {
		s.controlSocket.Release()
	}
	for _, server := range []*admin.Server{s.probes, s.metrics, s.control} {
		if server != nil {
			server.Release()
		}
	}
	if s.push != nil {
		s.push.Release()
	}
	s.log.Info("handed over", "successor", pid, "calls_in_flight", s.inFlight(), "calls_waiting", s.relay.Waiting())
}

// begin claims the one place for an upgrade.
func (u *upgrades) begin(ctx context.Context) (context.Context, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.stopping:
		return nil, errStopping
	case u.successor != nil:
		return nil, errors.New("another process has taken over already")
	case u.cancel != nil:
		return nil, errors.New("an upgrade is under way already")
	}
	ctx, u.cancel = context.WithCancelCause(ctx)
	u.running.Add(1)
	return ctx, nil
}

// done frees the place. successor is nil if nobody has taken over.
func (u *upgrades) done(successor *handover.Successor) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancel(nil)
	u.cancel = nil
	u.running.Done()
	if u.successor = successor; successor != nil {
		close(u.over)
	}
}

// underWay reports whether a new process has been started that has not taken over
// yet.
func (u *upgrades) underWay() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cancel != nil
}

// stop gives up what is under way; wait returns when it is undone.
func (u *upgrades) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopping = true
	if u.cancel != nil {
		u.cancel(errStopping)
	}
}

func (u *upgrades) wait() { u.running.Wait() }
