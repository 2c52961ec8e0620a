package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/worker"
)

// makeEndpoints prepares what the probes and the metrics page will look at.
func (s *service) makeEndpoints(out io.Writer) error {
	if len(s.cfg.Upstreams) > 0 {
		s.makeUpstreams()
	}
	if len(s.cfg.Command) > 0 {
		return s.makeWorkers(out)
	}
	return nil
}

func (s *service) makeWorkers(out io.Writer) error {
	cfg := s.cfg
	pool := newPool(s.relay, cfg.Workers.PoolSize, true)
	workers, err := worker.New(worker.Options{
		Count: cfg.Workers.Count, Command: cfg.Command, Transport: cfg.Workers.Transport,
		StartPort: cfg.Workers.StartPort, Slots: cfg.Workers.PoolSize, MetricsPath: cfg.Workers.MetricsPath,
		BootTimeout: cfg.Workers.BootTimeout, StopTimeout: cfg.Workers.StopTimeout,
		HealthInterval: cfg.HealthCheck.Interval, HealthTimeout: cfg.HealthCheck.Timeout,
		HangTimeout: cfg.HangTimeout,
		MaxSurge:    1, MaxDraining: 1, MinReady: cfg.Workers.MinReady, DrainTimeout: cfg.DrainTimeout,
		Output: worker.Output{Writer: out, JSON: logFormat(cfg.Log, os.Stderr) == "json"},
		Logger: s.log, Rank: pool, Activity: pool,
	})
	if err != nil {
		return usageError(err)
	}
	s.workers = workers
	return nil
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

func (s *service) makeUpstreams() {
	pool := newPool(s.relay, s.cfg.Workers.PoolSize, false)
	for _, address := range s.cfg.Upstreams {
		pool.endpoint(address) // so that it is seen before it is reached
	}
	s.upstreams = discover.NewStatic(s.cfg.Upstreams, pool, s.log)
}
