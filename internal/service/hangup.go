package service

import (
	"context"
	"os"

	"github.com/cabrank/cabrank/internal/admin"
)

// hangup looks whether this process has a terminal, and returns what tells later
// whether that has gone. SIGHUP asks to restart the workers, but also comes when
// a terminal is closed, and then it means what it always did: the end.
func hangup() (lost func() bool) {
	if !hasTerminal() {
		return func() bool { return false }
	}
	return func() bool { return !hasTerminal() }
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
		return s.restart(ctx, admin.RestartRequest{}, tell)
	})
	if err != nil {
		s.log.Error("restart failed", "error", err)
	}
}

// upgradeBySignal has a new cabrank take over because of SIGUSR2.
func (s *service) upgradeBySignal(ctx context.Context) {
	// The log has the error already, and there is nobody else to tell.
	_ = s.orders.journal.Run("upgrade", nil, func(tell func(admin.Event)) error {
		return s.upgrade(ctx, 0, tellHandover(tell))
	})
}
