package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/cabrank/cabrank/internal/config"
)

// serve runs the relay as cfg says, which was made from, until a signal, the control
// or a failure ends it. out takes what the workers print.
func serve(cfg *config.Config, from origin, log *slog.Logger, out io.Writer) error {
	// The start can hang, too: in an exec on a file system that does.
	starting, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	s, err := newService(cfg, from, log, newOrders(giveUp))
	if err != nil {
		return err
	}
	defer s.heed()()
	err = s.start(starting, out)
	close(s.orders.started)
	if err != nil {
		s.failTakeOver(err)
		if starting.Err() == nil {
			s.end()
			return err
		}
	} else {
		go s.tellManager() // ends with the service
	}
	var failure error
	var asked os.Signal
	select {
	case <-s.upgrades.over:
		log.Info("draining, another process has taken over")
	case asked = <-s.orders.stop:
		log.Info("stopping", "signal", asked.String(), "calls_in_flight", s.inFlight(), "calls_waiting", s.relay.Waiting())
	case failure = <-s.failed:
		log.Error("stopping", "error", failure)
	}
	s.stop(asked)
	log.Info("stopped")
	return failure
}
