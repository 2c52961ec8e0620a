package service

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
)

// orders are what signals and the control ask a service for, and what has come
// of it.
//
// Concurrency: everything in it may be used from anywhere.
type orders struct {
	stop    chan os.Signal // who asks to stop
	serving phase          // until somebody asks to stop, or it stops by itself
	started chan struct{}  // closed when start has returned
	alive   phase          // until nothing is left but the control
	cut     int            // calls that did not end before the stop; counted when alive is over

	journal  *admin.Journal
	command  atomic.Pointer[[]string]           // of the workers, in place of the configured one; nil: that
	proven   atomic.Pointer[[]string]           // the command with which all workers got ready in a restart
	reloaded atomic.Pointer[admin.ReloadStatus] // nil before the first reload
}

func newOrders() *orders {
	return &orders{
		stop: make(chan os.Signal, 2), serving: newPhase(), started: make(chan struct{}), alive: newPhase(),
		journal: admin.NewJournal(),
	}
}

// askToStop has serve stop, or stop faster.
func (o *orders) askToStop(why os.Signal) {
	o.serving.end(errStopping)
	select {
	case o.stop <- why:
	default: // it has been asked twice already
	}
}

// stopRequest is a stop that the control asks for. It goes the way of the
// signals, and implements os.Signal for that.
type stopRequest struct{ now bool }

// Signal implements os.Signal.
func (stopRequest) Signal() {}

// String implements os.Signal.
func (r stopRequest) String() string {
	if r.now {
		return "cabrank stop --now"
	}
	return "cabrank stop"
}

// held are signals that wait for somebody to heed them.
type held struct {
	signals chan os.Signal
	// lost tells whether the terminal has gone that this process had. SIGHUP asks to restart
	// the workers, but also comes then, and means what it always did: the end.
	lost func() bool
}

// hasTerminal says whether this process has a controlling terminal. The kernel
// takes it away before it sends the signal (tty_ioctl(4), TIOCNOTTY).
func hasTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = terminal.Close()
	return true
}

// heldKey is where a context has them.
type heldKey struct{}

// HoldSignals keeps signals that ask a service for something from ending a process that
// is about to become one. Those to stop end it: nothing has begun.
func HoldSignals(ctx context.Context) context.Context {
	terminal := hasTerminal()
	h := held{make(chan os.Signal, 4), func() bool { return terminal && !hasTerminal() }}
	signal.Notify(h.signals, syscall.SIGUSR1, syscall.SIGUSR2)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup: Notify would undo that
		signal.Notify(h.signals, syscall.SIGHUP)
	}
	return context.WithValue(ctx, heldKey{}, h)
}

// heldSignals returns what HoldSignals has put into ctx, or holds from now on.
func heldSignals(ctx context.Context) held {
	if h, ok := ctx.Value(heldKey{}).(held); ok {
		return h
	}
	return heldSignals(HoldSignals(ctx))
}

// heed does what signals ask for, those that were held first, until it is told to stop.
func (s *service) heed(from held) (stop func()) {
	signal.Notify(from.signals, cli.StopSignals()...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends by stop
		defer close(done)
		for stops := (cli.Echoes{}); ; {
			select {
			case got := <-from.signals:
				s.obey(ctx, got, from.lost, &stops)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(from.signals)
		cancel()
		<-done
	}
}

// obey does what one signal asks for. lost tells whether the terminal has gone.
func (s *service) obey(ctx context.Context, got os.Signal, lost func() bool, stops *cli.Echoes) {
	switch {
	case got == syscall.SIGUSR1:
		s.access.reopen()
	case got == syscall.SIGUSR2:
		go s.whenStarted(ctx, s.upgradeBySignal)
	case got == syscall.SIGHUP && !lost():
		go s.whenStarted(ctx, s.restartBySignal)
	case stops.IsEcho(time.Now()):
		s.log.Debug("taken for the same signal as the one before", "signal", got.String())
	default:
		s.orders.askToStop(got)
	}
}

// whenStarted does something that needs all parts. ctx ends with the service.
func (s *service) whenStarted(ctx context.Context, do func(context.Context)) {
	select {
	case <-s.orders.started:
		do(ctx)
	case <-ctx.Done():
	}
}

// restartBySignal replaces the workers because of SIGHUP, as cabrank restart
// does, or takes the configuration if there are none. Nobody waits for it: the log
// and the status tell how it ended.
func (s *service) restartBySignal(ctx context.Context) {
	if s.workers == nil {
		_, _ = s.reloadAndTell() // the log has the error, and there is nobody else to tell
		return
	}
	s.log.Info("restarting", "signal", "hangup")
	err := s.orders.journal.Run("restart", nil, func(tell func(admin.Event)) error {
		return s.Restart(ctx, admin.RestartRequest{}, tell)
	})
	if err != nil {
		s.log.Error("restart failed", "error", err)
	}
}

// upgradeBySignal has a new cabrank take over because of SIGUSR2.
func (s *service) upgradeBySignal(ctx context.Context) {
	// The log has the error already, and there is nobody else to tell.
	_ = s.orders.journal.Run("upgrade", nil, func(tell func(admin.Event)) error {
		return s.Upgrade(ctx, admin.UpgradeRequest{}, tell)
	})
}

// awaitHurry calls hurry when somebody asks again, and is in a hurry. asked
// tells whether somebody has asked at all: after an upgrade the old process
// drains by itself, and one SIGTERM must not cut its calls (R17: a second one
// does). It ends with that or with ctx.
func (s *service) awaitHurry(ctx context.Context, asked bool, hurry func()) {
	for {
		select {
		case got := <-s.orders.stop:
			switch {
			case got == (stopRequest{}): // who only waits with the others
			case !asked && got != (stopRequest{now: true}):
				asked = true
				s.log.Info("stopping already", "signal", got.String())
			default:
				s.log.Warn("not waiting for calls", "signal", got.String())
				hurry()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
