package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/cabrank/cabrank/internal/config"
)

// serve runs the relay as cfg says until a signal or a failure ends it. out
// takes what the workers print.
func serve(cfg *config.Config, log *slog.Logger, out io.Writer) error {
	s, err := newService(cfg, log)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	// The start can hang, too: in an exec on a file system that does.
	starting, started := signal.NotifyContext(context.Background(), stopSignals()...)
	defer started()
	if err := s.start(starting, out); err != nil {
		s.failTakeOver(err)
		if starting.Err() == nil {
			s.end()
			return err
		}
	}
	go s.tellManager() // ends with the service
	var failure error
	select {
	case <-s.upgrades.over:
		log.Info("draining, another process has taken over")
		go s.closeAdmin() // bounded; end waits for it once more
	case got := <-signals:
		log.Info("stopping", "signal", got.String(), "calls_in_flight", s.inFlight(), "calls_waiting", s.relay.Waiting())
	case failure = <-s.failed:
		log.Error("stopping", "error", failure)
	}
	s.stop(signals)
	log.Info("stopped")
	return failure
}

// stopSignals are the signals that ask to stop.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	if signal.Ignored(syscall.SIGHUP) { // by nohup: Notify would undo that
		return signals
	}
	return append(signals, syscall.SIGHUP)
}
