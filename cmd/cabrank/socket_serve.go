package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/service"
)

const socketServeHelp = `Serve callers over WebSocket. With --redis, or CABRANK_REDIS, which keeps a password out of
the list of processes, functions are those of callees at that Redis, and servers at one
Redis have their channels together. Without it all is in one process, with nothing to
install.

It is a cabrank without workers: status, reload, upgrade and stop find it as they find one
that has some, in CABRANK_CONTROL if that names a path.

A signal asks to stop: nobody new comes in, sockets without a call leave spread over half
of --drain-timeout, those with one when it is answered, all others at its end. A second
signal is that end.

Exit status: 0 if all was done; 1 if something failed while running; 2 if the command line
is wrong; 3 if calls were cut that had not ended in time.`

const socketServeExamples = `  # sockets at ws://localhost:9000/ws, with functions to try: test.echo, test.delay
  cabrank socket serve --listen localhost:9000 --test-functions

  # with the callees and other servers of a Redis
  CABRANK_REDIS=redis://10.0.0.5:6379 cabrank socket serve

  # for a page that comes from elsewhere
  cabrank socket serve --listen :9000 --origin https://shop.example --metrics :9394`

// defaultPath is that of the sockets of juggler.0 since ever.
const defaultPath = "/ws"

// socketServe is the flags of cabrank socket serve: those that are keys of cabrank run,
// too, and its own.
type socketServe struct {
	given flagValues
	log   config.Log // of the configuration
}

func newSocketServeCommand() *cobra.Command {
	f := socketServe{given: flagValues{}}
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve callers over WebSocket",
		Long:    socketServeHelp,
		Example: socketServeExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := f.load(); err != nil { // a wrong flag is told as text, whatever the log is
				return err
			}
			return service.Run(cmd.Context(), service.Options{
				Build: build(), Load: f.load, Log: func() config.Log { return f.log },
				Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
			})
		},
	}
	f.addTo(cmd)
	return cmd
}

func (f *socketServe) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&flagValue{f.given, config.Key{Flag: config.ConfigFlag}}, config.ConfigFlag, "`FILE` of the old server of juggler.0; flags and variables come before it (docs/juggler.md)")
	for _, key := range config.SocketFlags() {
		if key.Flag == "path" {
			key.Help = "paths of the sockets (default " + defaultPath + ")"
		}
		f.given.add(flags, key)
	}
}

// load makes a configuration without workers.
func (f *socketServe) load() (*config.Config, error) {
	cfg, err := config.LoadSocket(f.given, config.System())
	if err == nil && cfg.Socket.Redis != "" && cfg.Socket.Serve.TestFunctions {
		err = errors.New("--test-functions are in this process: with --redis, functions are those of callees there")
	}
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if len(cfg.Socket.Paths) == 0 {
		cfg.Socket.Paths = []string{defaultPath}
	}
	f.log = cfg.Log
	cfg.Limits.Connections = cfg.Socket.Serve.MaxSockets/3*4 + 4 // sockets have three quarters
	return cfg, nil
}
