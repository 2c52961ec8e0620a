package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/socket"
)

const socketServeHelp = `Serve callers over WebSocket. With --redis, or CABRANK_REDIS, which keeps a password out of
the list of processes, functions are those of callees at that Redis, and servers at one
Redis have their channels together. Without it all is in one process, with nothing to
install.

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

// socketServe is the flags of cabrank socket serve.
type socketServe struct {
	socket.Options

	listen, metrics, probes string
	paths, origins          []string
	drain                   time.Duration
	redis                   string
	testFunctions           bool
	memory                  broker.MemoryOptions
	log                     config.Log
}

func newSocketServeCommand() *cobra.Command {
	var f socketServe
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve callers over WebSocket",
		Long:    socketServeHelp,
		Example: socketServeExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("redis") {
				f.redis = os.Getenv("CABRANK_REDIS")
			}
			if err := f.check(); err != nil {
				return usageError(err)
			}
			return f.run(cmd.ErrOrStderr())
		},
	}
	f.addTo(cmd)
	return cmd
}

func (f *socketServe) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", ":9000", "`HOST:PORT` where callers come in")
	flags.StringVar(&f.redis, "redis", "", "`ADDRESS` of a Redis or Valkey: HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS [CABRANK_REDIS]")
	flags.StringArrayVar(&f.paths, "path", []string{"/ws"}, "`PATH` of the sockets; several are possible")
	flags.StringArrayVar(&f.origins, "origin", nil, "`ORIGIN` of pages that may connect, or none for callers that are no page; several are possible (default the host itself)")
	flags.BoolVar(&f.AllowEmptySubprotocol, "allow-empty-subprotocol", false, "serve callers that do not ask for juggler.0, too")
	flags.StringVar(&f.CloseURI, "close-uri", "", "`URI` that ends the socket of who calls it")
	flags.BoolVar(&f.testFunctions, "test-functions", false, "answer test.echo, test.reverse, test.delay and test.nothing")
	flags.StringVar(&f.metrics, "metrics", "off", "`HOST:PORT` of the metrics page, or off")
	flags.StringVar(&f.probes, "probes", "off", "`HOST:PORT` of the probes, or off")
	flags.DurationVar(&f.drain, "drain-timeout", 20*time.Second, "how long a stop may take")
	flags.DurationVar(&f.Ping, "ping", 30*time.Second, "silence after which a caller is pinged; half as much again ends it")
	flags.DurationVar(&f.ReadTimeout, "read-timeout", 30*time.Second, "how long a message may take to come in")
	flags.DurationVar(&f.WriteTimeout, "write-timeout", 30*time.Second, "how long a caller may take to read what was sent")
	flags.Int64Var(&f.ReadLimit, "read-limit", 1<<20, "most `bytes` of a message that comes in")
	flags.Int64Var(&f.WriteLimit, "write-limit", 0, "most `bytes` of a reply; 0: any")
	flags.IntVar(&f.MaxSockets, "max-sockets", 100_000, "most sockets")
	flags.IntVar(&f.HandshakesPerSecond, "max-handshakes", 1_000, "most new sockets in a second")
	flags.IntVar(&f.MaxCalls, "max-calls", 1_000, "most calls of a socket at a time")
	flags.IntVar(&f.MaxSubscriptions, "max-subscriptions", 1_000, "most subscriptions of a socket")
	flags.IntVar(&f.MaxName, "max-name", 1_024, "most `bytes` of a URI or channel")
	flags.IntVar(&f.QueueBytes, "queue-bytes", 256<<10, "most `bytes` of events that wait for one socket; the oldest are dropped")
	flags.Int64Var(&f.BufferTotal, "buffer-total", 64<<20, "most `bytes` that wait for all sockets")
	flags.IntVar(&f.memory.CallCap, "call-cap", 0, "most calls that wait for one URI; 0: any number")
	flags.Int64Var(&f.memory.WaitingBytes, "waiting-total", 64<<20, "most `bytes` of calls that wait for a function")
	flags.StringVar(&f.log.Level, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.log.Format, "log-format", "auto", "auto, text or json")
}

// check holds the flags against what they may be.
func (f *socketServe) check() error {
	for name, value := range map[string]int64{
		"ping": int64(f.Ping), "read-timeout": int64(f.ReadTimeout), "write-timeout": int64(f.WriteTimeout),
		"read-limit": f.ReadLimit, "max-sockets": int64(f.MaxSockets), "max-handshakes": int64(f.HandshakesPerSecond),
		"max-calls": int64(f.MaxCalls), "max-subscriptions": int64(f.MaxSubscriptions), "max-name": int64(f.MaxName),
		"queue-bytes": int64(f.QueueBytes), "buffer-total": f.BufferTotal, "waiting-total": f.memory.WaitingBytes,
	} {
		if value <= 0 {
			return fmt.Errorf("--%s must be above 0", name)
		}
	}
	for name, address := range map[string]string{"listen": f.listen, "metrics": f.metrics, "probes": f.probes} {
		if address == "off" && name != "listen" {
			continue
		}
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("--%s %.60q: want HOST:PORT, such as localhost:9000, port 0 to 65535", name, address)
		}
	}
	for _, path := range f.paths {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("--path %s: it must begin with a slash", path)
		}
	}
	switch {
	case f.redis != "" && f.testFunctions:
		return errors.New("--test-functions are in this process: with --redis, functions are those of callees there")
	case f.drain < 0:
		return errors.New("--drain-timeout must not be below 0")
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, f.log.Level):
		return fmt.Errorf("--log-level %s: debug, info, warn and error are possible", f.log.Level)
	case !slices.Contains([]string{"auto", "text", "json"}, f.log.Format):
		return fmt.Errorf("--log-format %s: auto, text and json are possible", f.log.Format)
	}
	f.Origins = nil
	for _, origin := range f.origins {
		if origin == "none" {
			origin = ""
		}
		f.Origins = append(f.Origins, origin)
	}
	return nil
}
