package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/callee"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/service"
)

const socketCalleeHelp = `Answer the calls of test.echo, test.reverse, test.delay, test.nothing and test.count, which
has several results, that come over a Redis, to try its servers: those of cabrank socket serve --redis, and of juggler.0.
Callees of your own are programs in Go with the package callee; docs/socket-redis.md has them.

A signal asks to stop: no more calls are taken, and those that were are finished, for
--drain-timeout at most. A second signal is that end.

Exit status: 0 if all was done; 1 if Redis could not be reached at the start; 2 if the
command line is wrong; 3 if calls were cut that had not ended in time.`

const socketCalleeExamples = `  # a server, a callee, and 100 more functions that sleep
  cabrank socket serve --redis localhost:6379
  cabrank socket callee --redis localhost:6379 --delays 100`

// socketCallee is the flags of cabrank socket callee: those that are keys of cabrank socket
// serve, too, and its own.
type socketCallee struct {
	given   flagValues
	workers int
	delays  int
	kept    bool
}

func newSocketCalleeCommand() *cobra.Command {
	f := socketCallee{given: flagValues{}}
	cmd := &cobra.Command{
		Use:     "callee",
		Short:   "Answer test functions over a Redis",
		Long:    socketCalleeHelp,
		Example: socketCalleeExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadSocket(f.given, config.Sources{Environ: []string{"CABRANK_REDIS=" + os.Getenv("CABRANK_REDIS")}})
			if err == nil {
				err = f.check(cfg)
			}
			if err != nil {
				return cli.UsageError(err)
			}
			return f.run(cfg, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, key := range config.SocketFlags() {
		switch key.Flag {
		case "redis":
			key.Help, key.Default = "a Redis or Valkey: HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS", ""
		case "drain-timeout":
			key.Help = "how long a stop may take"
		case "log-level", "log-format":
		default:
			continue
		}
		f.given.add(flags, key)
	}
	flags.IntVar(&f.workers, "workers", 100, "most calls at a time")
	flags.IntVar(&f.delays, "delays", 0, "`N` more functions that sleep: test.delay.0 and so on")
	flags.BoolVar(&f.kept, "at-least-once", false, "have a call be answered by another callee if this one is killed")
	return cmd
}

// mostDelays bounds what a mistyped number costs.
const mostDelays = 10_000

func (f *socketCallee) check(cfg *config.Config) error {
	switch {
	case cfg.Socket.Redis == "":
		return errors.New("--redis or CABRANK_REDIS must say where Redis is")
	case f.workers <= 0:
		return errors.New("--workers must be above 0")
	case f.delays < 0 || f.delays > mostDelays:
		return fmt.Errorf("--delays must be 0 to %d", mostDelays)
	}
	return nil
}

// run answers calls until a signal comes.
func (f *socketCallee) run(cfg *config.Config, logTo io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, cli.StopSignals()...)
	defer signal.Stop(signals)
	log := service.OpenLog(cfg.Log, logTo)
	defer log.Close()
	redis, _ := cfg.Socket.RedisAddresses()
	c := callee.New(callee.Options{Redis: redis, Workers: f.workers, Log: log.Logger})
	var options []callee.Option
	if f.kept {
		options = append(options, callee.AtLeastOnce())
	}
	functions := broker.TestFunctions()
	for i := range f.delays {
		functions[fmt.Sprintf("test.delay.%d", i)] = functions["test.delay"]
	}
	for uri, function := range functions {
		c.HandleCalls(uri, onCall(function), options...)
	}
	for uri, function := range broker.TestStreams() {
		c.HandleCalls(uri, onStream(function), options...)
	}
	if err := c.Start(); err != nil {
		return log.Fail(err)
	}
	log.Info("taking calls", "workers", f.workers)
	log.Info("stopping", "signal", (<-signals).String())
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	go hurry(ctx, signals, began, cancel) // ends with run
	err := c.Shutdown(ctx)
	answered := c.Stats().Answered
	if err != nil {
		log.Warn("stopped", "answered", answered, "error", err.Error())
		return cli.ErrCut
	}
	log.Info("stopped", "answered", answered, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// hurry ends a stop that began at a time early when another signal comes, until ctx ends.
func hurry(ctx context.Context, again <-chan os.Signal, began time.Time, cancel context.CancelFunc) {
	for last := (cli.Echoes{Last: began}); ; {
		select {
		case <-again:
			if !last.IsEcho(time.Now()) {
				cancel()
			}
		case <-ctx.Done():
			return
		}
	}
}

func onStream(f broker.StreamFunction) callee.Handler {
	return func(ctx context.Context, call *callee.Call) (any, error) {
		return f(ctx, call.Args, func(result json.RawMessage) error { return call.Send(ctx, result) })
	}
}

func onCall(f broker.Function) callee.Handler {
	return func(ctx context.Context, call *callee.Call) (any, error) { return f(ctx, call.Args) }
}
