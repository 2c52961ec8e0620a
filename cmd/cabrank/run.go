package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc/grpclog"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/sink"
)

// run is `cabrank run`. Whatever it has to say goes through the log, which waits
// for nobody.
func run(ctx context.Context, given flagValues, command []string, stdout, stderr io.Writer) error {
	signals := heldSignals(ctx)
	outliveReaders()
	// By itself the library of the health checks writes its errors to stderr.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	cfg, err := loadConfig(given, command)
	if err != nil {
		log := openLog(config.LoadLog(sourcesOf(given, command)), slog.LevelInfo, stderr)
		defer log.close()
		return log.fail(err)
	}
	from := origin{
		load:  func() (*config.Config, error) { return loadConfig(given, command) },
		level: new(slog.LevelVar),
	}
	from.level.Set(cfg.Log.SlogLevel())
	log := openLog(cfg.Log, from.level, stderr)
	defer log.close()
	for _, warning := range cfg.Warnings {
		log.Warn("configuration", "warning", warning)
	}
	return log.fail(serve(cfg, from, signals, log, stdout))
}

// outliveReaders has a write to a pipe that nobody reads any more fail, where the
// runtime would end the process. To ignore the signal would be inherited by the
// workers.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// loadConfig makes the configuration out of this process's surroundings, the
// flags and the command after "--".
func loadConfig(given flagValues, command []string) (*config.Config, error) {
	cfg, err := config.Load(sourcesOf(given, command))
	return cfg, cli.UsageError(err)
}

func sourcesOf(given flagValues, command []string) config.Sources {
	sources := config.System()
	sources.Flags, sources.Command = given, command
	return sources
}

// serve runs the relay as cfg says, which was made from, until one of the signals, the
// control or a failure ends it. out takes what the workers print.
func serve(cfg *config.Config, from origin, signals held, log *serviceLog, out io.Writer) error {
	// The start can hang, too: in an exec on a file system that does.
	starting, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	s, err := newService(cfg, from, log, newOrders(giveUp))
	if err != nil {
		return err
	}
	shared := &sharedWriter{to: sink.Whole{To: out}}
	if err := s.openAccess(shared); err != nil {
		s.failTakeOver(err)
		return err
	}
	defer s.access.close()
	defer s.heed(signals)()
	err = s.start(starting, shared)
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
