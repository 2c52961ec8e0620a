package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/worker"
)

// replayTotal bounds the request bytes that the process keeps for replays (R3).
const replayTotal = 16 << 20

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
	workers   *worker.Supervisor // nil with upstreams
	upstreams *discover.Static   // nil with workers
	failed    chan error         // a part that must not end has ended
}

// serve runs the relay as cfg says until a signal or a failure ends it. out
// takes what the workers print.
func serve(cfg *config.Config, log *slog.Logger, out io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	// The start can hang, too: in an exec on a file system that does.
	starting, started := signal.NotifyContext(context.Background(), stopSignals()...)
	defer started()
	s := &service{cfg: cfg, log: log, failed: make(chan error, 1)}
	if err := s.start(starting, out); err != nil && starting.Err() == nil {
		s.end()
		return err
	}
	var failure error
	select {
	case got := <-signals:
		log.Info("stopping", "signal", got.String(), "calls_in_flight", s.inFlight(), "calls_waiting", s.relay.Waiting())
	case failure = <-s.failed:
		log.Error("stopping", "error", failure)
	}
	s.stop(signals)
	log.Info("stopped")
	return failure
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
	} else {
		told = append(told, "workers", s.cfg.Workers.Count, "transport", s.cfg.Workers.Transport)
	}
	if s.cfg.Workers.AutoSlots {
		told = append(told, "slots", "auto")
	} else {
		told = append(told, "slots", s.cfg.Workers.PoolSize)
	}
	s.log.Info("starting", told...)
}

// inFlight counts the calls that have a slot.
func (s *service) inFlight() int {
	calls := 0
	for _, endpoint := range s.relay.Rank().Endpoints {
		calls += endpoint.InFlight
	}
	return calls
}

// stopSignals are the signals that ask to stop.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	if signal.Ignored(syscall.SIGHUP) { // by nohup: Notify would undo that
		return signals
	}
	return append(signals, syscall.SIGHUP)
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
		return nil
	}
	return s.startWorkers(ctx)
}

func (s *service) startWorkers(ctx context.Context) error {
	err := s.workers.Start(ctx)
	if hint := startHint(s.cfg.Command, err); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return usageError(err)
}

// startHint says what is most likely wrong with a command that was not found.
func startHint(command []string, err error) string {
	switch {
	case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist):
		return ""
	case slices.Equal(command, config.DefaultCommand()):
		return "without a command the workers are gruf's; another follows --, as in cabrank run -- python worker.py"
	case strings.Contains(command[0], " "):
		return "all of it was taken as the name of one program: leave out the quotes"
	case errors.Is(err, exec.ErrNotFound):
		return "what follows -- is started directly, not by a shell"
	}
	return ""
}

// makeEndpoints prepares what the probes and the metrics page will look at.
func (s *service) makeEndpoints(out io.Writer) error {
	if len(s.cfg.Upstreams) > 0 {
		s.makeUpstreams()
		return nil
	}
	return s.makeWorkers(out)
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

func relayOptions(cfg *config.Config, log *slog.Logger) relay.Options {
	fewest, most := slotBounds(cfg.Workers)
	return relay.Options{
		SlotsMin:     fewest,
		SlotsMax:     most,
		Shards:       cfg.Shards,
		QueueLength:  cfg.Queue.Length,
		QueueTimeout: cfg.Queue.Timeout,
		CallTimeout:  cfg.Server.ProxyTimeout,
		MinReady:     cfg.Workers.MinReady,
		Refusals:     cfg.Refusals,
		ReplayBytes:  int(cfg.ReplayBytes),
		ReplayTotal:  replayTotal,
		BufferTotal:  int64(cfg.BufferTotal),
		AbsorbBytes:  int(cfg.AbsorbBytes),
		StallTimeout: cfg.StallTimeout,
		HeaderList:   uint32(cfg.MaxHeaderList),
		MaxStreams:   uint32(cfg.MaxConcurrentStreams),
		Resets:       cfg.Limits.ResetsPerSecond,
		KeepAlive:    cfg.Limits.KeepAlive,
		Keys:         relayKeys(cfg),
		Lanes:        relayLanes(cfg),
		BalanceKey:   cfg.BalanceKey,
		MaxHops:      cfg.MaxHops,
		Explain:      cfg.Explain,
		Limits: relay.Limits{
			Connections: openable(cfg, openFiles(), log),
			Handshake:   cfg.Limits.HandshakeTimeout,
			Header:      cfg.Limits.HeaderTimeout,
			Window:      int32(cfg.Limits.Window),
			MaxWindow:   int32(cfg.Limits.MaxWindow),
			Buffer:      int(cfg.Limits.Buffer),
			Frame:       uint32(cfg.Limits.FrameSize),
			Idle:        cfg.Limits.IdleTimeout,
			Age:         cfg.Limits.ConnectionAge,
		},
		Methods:     methodRules(cfg.Methods),
		RetryBudget: relay.RetryBudget{Ratio: cfg.RetryBudget.Ratio, PerSecond: cfg.RetryBudget.PerSecond},
		Rank:        rankOptions(cfg),
		OnCancel:    onCancel(cfg.CancelledSlots()),
		Log:         log,
		Random:      rand.Float64,
		Nap:         nap(),
	}
}

func methodRules(from []config.MethodRule) []relay.MethodRule {
	rules := make([]relay.MethodRule, len(from))
	for i, rule := range from {
		rules[i] = relay.MethodRule{
			Pattern: rule.Pattern, Idempotent: rule.Idempotent, Retries: rule.Retries,
			HedgeAfter: rule.HedgeAfter, HedgeAuto: rule.HedgeAuto,
			OnCancel: onCancel(rule.OnCancel),
		}
		for _, name := range rule.RetryOn {
			if code, known := grpcwire.CodeNamed(name); known {
				rules[i].RetryOn = append(rules[i].RetryOn, code)
			}
		}
	}
	return rules
}

func (s *service) makeWorkers(out io.Writer) error {
	cfg := s.cfg
	pool := newPool(s.relay)
	for i := range cfg.Workers.Count {
		pool.add(fmt.Sprintf("worker-%d", i+1), cfg.Workers.PoolSize, true)
	}
	workers, err := worker.New(worker.Options{
		Count: cfg.Workers.Count, Command: cfg.Command, Transport: cfg.Workers.Transport,
		StartPort: cfg.Workers.StartPort, Slots: cfg.Workers.PoolSize, MetricsPath: cfg.Workers.MetricsPath,
		BootTimeout: cfg.Workers.BootTimeout, StopTimeout: cfg.Workers.StopTimeout,
		HealthInterval: cfg.HealthCheck.Interval, HealthTimeout: cfg.HealthCheck.Timeout,
		HangTimeout: cfg.HangTimeout,
		Output:      worker.Output{Writer: out, JSON: logFormat(cfg.Log, os.Stderr) == "json"},
		Logger:      s.log, Rank: pool, Activity: pool,
	})
	if err != nil {
		return usageError(err)
	}
	s.workers = workers
	return nil
}

func (s *service) makeUpstreams() {
	pool := newPool(s.relay)
	for _, address := range s.cfg.Upstreams {
		pool.add(address, s.cfg.Workers.PoolSize, false)
	}
	s.upstreams = discover.NewStatic(s.cfg.Upstreams, pool, s.log)
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
