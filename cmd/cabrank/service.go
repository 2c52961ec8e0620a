package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/worker"
)

// adminTime bounds the end of the probe and metrics servers.
const adminTime = time.Second

// service is one running cabrank: the parts in the order in which they start.
// They stop in the reverse order, but for the probes, which answer to the last.
type service struct {
	cfg *config.Config
	log *slog.Logger

	relay     *relay.Relay
	probes    *admin.Server
	metrics   *admin.Server
	workers   *worker.Supervisor // nil if only others run endpoints
	upstreams *discover.Static   // nil if nobody else runs any
	failed    chan error         // a part that must not end has ended
}

// announce says what is about to run, above all what nobody wrote down: the
// number of usable CPUs, the file that happened to be there. The command is not
// told, it may hold secrets.
func (s *service) announce() {
	told := []any{"version", version}
	if s.cfg.File != "" {
		told = append(told, "config", s.cfg.File)
	}
	if upstreams := len(s.cfg.Upstreams); upstreams > 0 {
		told = append(told, "upstreams", upstreams)
	}
	if len(s.cfg.Command) > 0 {
		told = append(told, "workers", s.cfg.Workers.Count, "transport", s.cfg.Workers.Transport)
	}
	if s.cfg.Workers.AutoSlots {
		told = append(told, "slots", "auto")
	} else {
		told = append(told, "slots", s.cfg.Workers.PoolSize)
	}
	s.log.Info("starting", told...)
}

// start opens the door first: calls that come before a worker is ready wait.
// It gives up when ctx ends.
func (s *service) start(ctx context.Context, out io.Writer) error {
	s.announce()
	s.relay = relay.New(relayOptions(s.cfg, s.log))
	listener, err := admin.Listen(s.cfg.Server.Addr(), "--listen")
	if err != nil {
		return err
	}
	s.log.Info("listening", "addr", listener.Addr().String())
	go s.watch(s.relay.Serve, listener) // ends with the listener
	if err := s.makeEndpoints(out); err != nil {
		return err
	}
	if err := s.startAdmin(); err != nil {
		return err
	}
	if s.upstreams != nil {
		s.upstreams.Start()
	}
	if s.workers != nil {
		return s.startWorkers(ctx)
	}
	return nil
}

// watch reports a listener that died.
func (s *service) watch(serve func(net.Listener) error, listener net.Listener) {
	if err := serve(listener); !errors.Is(err, relay.ErrClosed) {
		s.fail(fmt.Errorf("cannot take connections on %s: %w", listener.Addr(), err))
	}
}

func (s *service) fail(err error) {
	select {
	case s.failed <- err:
	default: // one reason to stop is enough
	}
}

// inFlight counts the calls that have a slot.
func (s *service) inFlight() int {
	calls := 0
	for _, endpoint := range s.relay.Rank().Endpoints {
		calls += endpoint.InFlight
	}
	return calls
}

// stop ends the service in the order of R17. A second signal skips the waits.
func (s *service) stop(signals <-chan os.Signal) {
	hurry := make(chan struct{})
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with the first of the two
		select {
		case got := <-signals:
			s.log.Warn("not waiting for calls", "signal", got.String())
			close(hurry)
		case <-done:
		}
	}()
	s.relay.StopServing()
	select {
	case <-time.After(s.cfg.PreStopDelay):
	case <-hurry:
	}
	s.relay.Drain(s.cfg.DrainTimeout, hurry)
	s.end()
}

// end stops whatever was started.
func (s *service) end() {
	if s.upstreams != nil {
		s.upstreams.Stop()
	}
	if s.workers != nil {
		s.workers.Stop(context.Background())
	}
	s.relay.Close()
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	for _, server := range []*admin.Server{s.probes, s.metrics} {
		if server != nil {
			_ = server.Shutdown(ctx) // the time limit is the answer to an error
		}
	}
}
