package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/worker"
)

// makeEndpoints prepares what the probes and the metrics page will look at.
func (s *service) makeEndpoints() error {
	if err := s.makeUpstreams(); err != nil {
		return err
	}
	if len(s.cfg.Command) > 0 {
		return s.makeWorkers()
	}
	return nil
}

// makeUpstreams prepares the endpoints that someone else runs; a reload may name
// some where there were none.
func (s *service) makeUpstreams() (err error) {
	cfg := s.cfg
	if s.peers, err = certs.NewPeers(cfg.UpstreamTLS, s.log); err != nil {
		return faulty(cfg, "upstream_tls", err)
	}
	s.outside = s.newPool(false)
	s.upstreams, err = discover.New(discover.Options{
		Times: times(cfg), Upstreams: cfg.Upstreams, Servers: cfg.DNS.Servers,
		MinTTL:   time.Second,     // for which an answer of a name server is kept, whatever it says
		MaxTTL:   5 * time.Minute, // the same; and of an empty one the endpoints of before
		Registry: s.outside, Membership: s.outside, Activity: s.outside, Logger: s.log, Dial: s.dial,
	})
	return cli.UsageError(err)
}

func times(cfg *config.Config) discover.Times {
	return discover.Times{DrainTimeout: cfg.DrainTimeout, HealthInterval: cfg.HealthCheck.Interval, HealthTimeout: cfg.HealthCheck.Timeout}
}

// dial connects to an endpoint that speaks TLS.
func (s *service) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return discover.Dial(ctx, network, address, s.peers.Config)
}

func (s *service) makeWorkers() error {
	pool := s.newPool(true)
	options := s.workerSettings(s.cfg)
	if s.firstWorkers > 0 {
		options.Count.N = s.firstWorkers
	}
	options.Output = worker.Output{Writer: s.stdout, JSON: logFormat(s.cfg.Log, os.Stderr) == "json"}
	options.Logger, options.Rank, options.Activity = s.log, pool, pool
	if s.scrape != nil {
		options.LastPage = s.scrape.last
	}
	if _, err := os.Executable(); err != nil {
		options.Executable = s.program
	}
	workers, err := worker.New(options)
	if err != nil {
		return cli.UsageError(err)
	}
	if p := s.inherited.Predecessor; p != nil {
		workers.Avoid(p.Ports)
	}
	s.workers, s.places = workers, pool
	s.autoscale = newAutoscale(s.cfg.Workers, workers, s.relay, os.DirFS("/"), s.log)
	return nil
}

// workerSettings are the options of workers by a configuration, as far as the supervisor
// does not have them from somewhere else. A command that a restart has brought wins over
// the configured one.
func (s *service) workerSettings(cfg *config.Config) worker.Options {
	o := worker.Options{
		Settings: cfg.Workers, Hooks: cfg.Hooks, WarmUp: cfg.WarmUp, Recycle: cfg.Recycle,
		DrainTimeout: cfg.DrainTimeout, HangTimeout: cfg.HangTimeout, MaxRunTime: cfg.MaxRunTime,
		HealthInterval: cfg.HealthCheck.Interval, HealthTimeout: cfg.HealthCheck.Timeout,
	}
	o.Command = cfg.Command
	if brought := s.orders.command.Load(); brought != nil {
		o.Command = *brought
	}
	o.MinReady = s.fewest(min(o.MinReady, o.Count.Least())) // upstreams may make up for more
	if s.fewer() && o.MaxSurge == 0 {
		o.MinReady = min(o.MinReady, s.firstWorkers-1) // one of them goes first
	}
	return o
}

func (s *service) startWorkers(ctx context.Context) error {
	err := s.workers.Start(ctx)
	if hint := startHint(s.cfg.Command, err); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return cli.UsageError(err)
}

// fleet returns the workers with their places, none if only others run endpoints.
func (s *service) fleet() []worker.Status {
	if s.workers == nil {
		return nil
	}
	return s.workers.Workers()
}

// crashLoop returns a worker that will not get ready soon, if there is one.
func (s *service) crashLoop() (w worker.Status, crashes bool) {
	all := s.fleet()
	at := slices.IndexFunc(all, func(w worker.Status) bool { return w.State == worker.CrashLoop })
	if at < 0 {
		return w, false
	}
	return all[at], true
}

// startHint says what is most likely wrong with a command that was not found.
func startHint(command []string, err error) string {
	file, _ := errors.AsType[*fs.PathError](err)
	switch {
	case !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist), file != nil && file.Path == os.DevNull:
		return ""
	case worker.IsHook(err):
		return "hooks are started directly, not by a shell"
	case slices.Equal(command, config.DefaultCommand()):
		return "without a command the workers are gruf's; another follows --, as in cabrank run -- python worker.py"
	case strings.Contains(command[0], " "):
		return "all of it was taken as the name of one program: leave out the quotes"
	case errors.Is(err, exec.ErrNotFound):
		return "the command is started directly, not by a shell"
	}
	return ""
}
