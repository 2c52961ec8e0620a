package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

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
	file  string
	idle  []string // keys of the file that have no effect

	asked service.SocketOptions
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
			if err := f.readOldFile(cmd.Flags()); err != nil {
				return cli.UsageError(err)
			}
			if _, err := f.load(); err != nil { // a wrong flag is told as text, whatever the log is
				return err
			}
			return service.Run(cmd.Context(), service.Options{
				Build: build(), Load: f.load, Log: func() config.Log { return f.log }, Sockets: f.asked,
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
	flags.StringVar(&f.file, config.ConfigFlag, "", "`FILE` of the old server of juggler.0; flags and variables come before it (docs/juggler.md)")
	for _, key := range config.SocketFlags() {
		if key.Flag == "path" {
			key.Help = "paths of the sockets (default " + defaultPath + ")"
		}
		f.given.add(flags, key)
	}
	flags.BoolVar(&f.asked.Beyond.AllowEmptySubprotocol, "allow-empty-subprotocol", false, "serve callers that do not ask for juggler.0, too")
	flags.DurationVar(&f.asked.Beyond.Ping, "ping", 30*time.Second, "silence after which a caller is pinged; half as much again ends it")
	flags.IntVar(&f.asked.Beyond.MaxCalls, "max-calls", 1000, "most calls of a socket at a time")
	flags.IntVar(&f.asked.Beyond.MaxSubscriptions, "max-subscriptions", 1000, "most subscriptions of a socket")
	flags.IntVar(&f.asked.Beyond.QueueBytes, "queue-bytes", 256<<10, "most `bytes` of events that wait for one socket; the oldest are dropped")
	flags.Int64Var(&f.asked.Beyond.BufferTotal, "buffer-total", 64<<20, "`bytes` by which the process may grow for all that waits for sockets")
	flags.StringVar(&f.asked.Beyond.CloseURI, "close-uri", "", "`URI` whose call ends the caller's socket")
	flags.BoolVar(&f.asked.TestFunctions, "test-functions", false, "answer test.echo, test.reverse, test.delay, test.nothing and test.count")
	flags.DurationVar(&f.asked.Beyond.ReadTimeout, "read-timeout", 30*time.Second, "how long a message may take to come in")
	flags.DurationVar(&f.asked.Beyond.WriteTimeout, "write-timeout", 30*time.Second, "how long a caller may take to read what was sent")
	flags.Int64Var(&f.asked.Beyond.WriteLimit, "write-limit", 0, "most `bytes` of a reply; 0: any")
	flags.IntVar(&f.asked.Beyond.MaxSockets, "max-sockets", 100_000, "most sockets")
	flags.IntVar(&f.asked.Beyond.HandshakesPerSecond, "max-handshakes", 1_000, "most new sockets in a second")
	flags.IntVar(&f.asked.Beyond.MaxName, "max-name", 1_024, "most `bytes` of a URI or channel")
	flags.Int64Var(&f.asked.WaitingBytes, "waiting-total", 64<<20, "most `bytes` of calls that wait for a function")
}

// load makes a configuration without workers: keys from flags and variables, and the other
// flags in the place of keys.
func (f *socketServe) load() (*config.Config, error) {
	cfg, err := config.LoadSocket(f.given, config.System())
	if err == nil {
		err = f.check(&cfg.Socket)
	}
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if len(cfg.Socket.Paths) == 0 {
		cfg.Socket.Paths = []string{defaultPath}
	}
	f.log = cfg.Log
	cfg.Limits.Connections = f.asked.Beyond.MaxSockets/3*4 + 4 // sockets have three quarters
	if len(f.idle) > 0 {
		cfg.Warnings = append(cfg.Warnings, "keys of the file have no effect here, see docs/juggler.md: "+strings.Join(f.idle, " "))
	}
	return cfg, nil
}

// check holds the flags that are no keys against what they may be.
func (f *socketServe) check(socket *config.Socket) error {
	beyond := f.asked.Beyond
	for name, value := range map[string]int64{
		"read-timeout": int64(beyond.ReadTimeout), "write-timeout": int64(beyond.WriteTimeout),
		"max-sockets": int64(beyond.MaxSockets), "max-handshakes": int64(beyond.HandshakesPerSecond),
		"max-name": int64(beyond.MaxName), "waiting-total": f.asked.WaitingBytes,
		"ping": int64(beyond.Ping), "max-calls": int64(beyond.MaxCalls), "max-subscriptions": int64(beyond.MaxSubscriptions),
		"queue-bytes": int64(beyond.QueueBytes), "buffer-total": beyond.BufferTotal,
	} {
		if value <= 0 {
			return fmt.Errorf("--%s must be above 0", name)
		}
	}
	if socket.Redis.Calls != "" && f.asked.TestFunctions {
		return errors.New("--test-functions are in this process: with --redis, functions are those of callees there")
	}
	return nil
}
